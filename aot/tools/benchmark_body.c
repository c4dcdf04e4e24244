
// Seeded inputs, and times of runs on them. What stands above this line is of one library.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

// Floats of either sign from a half to one, by their bits; integers of 0 to 7; sizes of dimensions in full.
static void fill(const array* a, unsigned char* to) {
  for (size_t k = 0; k < a->elements; ++k, to += a->width) {
    uint64_t bits = next_random();
    if (a->full_size >= 0) {
      bits = (uint64_t)a->full_size;
    } else if (a->mantissa > 0) {
      const uint64_t fraction = bits & ((UINT64_C(1) << a->mantissa) - 1);
      bits = (bits >> 63 << (a->bits - 1)) | (a->half << a->mantissa) | fraction;
    } else {
      bits &= a->bits >= 3 ? 7 : 1;
    }
    memcpy(to, &bits, a->width);  // little endian
  }
}

// In huge pages, where large, as kiln::Allocate of the C++ header gives it.
static void* memory(size_t bytes) {
  const size_t page = bytes >> 22 ? 2 << 20 : 4096, whole = (bytes + page) / page * page;
  void* out = aligned_alloc(page, whole);
  if (!out) {
    fprintf(stderr, "there is no memory for %zu bytes\n", bytes);
    exit(1);
  }
#ifdef MADV_HUGEPAGE
  if (page > 4096) madvise(out, whole, MADV_HUGEPAGE);
#endif
  memset(out, 0, bytes);
  return out;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

typedef struct options {
  long runs, threads;
  bool json;
} options;

static bool read_options(int argc, char** argv, options* o) {
  for (int k = 1; k < argc; ++k) {
    if (!strcmp(argv[k], "--json"))
      o->json = true;
    else if (!strcmp(argv[k], "--runs") && k + 1 < argc)
      o->runs = strtol(argv[++k], NULL, 10);
    else if (!strcmp(argv[k], "--threads") && k + 1 < argc)
      o->threads = strtol(argv[++k], NULL, 10);
    else
      return false;
  }
  return o->runs >= 0 && o->threads >= 1;
}

// Times until there are `runs`, or if that is 0, for a second. Donated arguments get their values back outside of them.
static size_t measure(kiln_call* call, void** original, long runs, double* times, size_t room) {
  const double begin = now_us();
  size_t count = 0;
  while (count < room && (runs ? count < (size_t)runs : count < 10 || now_us() - begin < 1e6)) {
    for (size_t k = 0; k < ARGUMENTS; ++k)
      if (arguments[k].donated) memcpy(call->arguments[k], original[k], arguments[k].elements * arguments[k].width);
    const double start = now_us();
    const int32_t status = model_run(call);
    times[count++] = now_us() - start;
    if (status != KILN_OK) {
      fprintf(stderr, "%s\n", model_status_text(status));
      exit(1);
    }
  }
  return count;
}

int main(int argc, char** argv) {
  options o = {0, 1, false};
  if (!read_options(argc, argv, &o)) {
    fprintf(stderr, "usage: %s [--runs N] [--threads N] [--json]\n", argv[0]);
    return 2;
  }
  void *given[ARGUMENTS + 1], *original[ARGUMENTS + 1], *made[RESULTS + 1];
  for (size_t k = 0; k < ARGUMENTS; ++k) {
    const size_t bytes = arguments[k].elements * arguments[k].width;
    given[k] = memory(bytes);
    fill(&arguments[k], given[k]);
    original[k] = arguments[k].donated ? memcpy(memory(bytes), given[k], bytes) : NULL;
  }
  for (size_t k = 0; k < RESULTS; ++k) made[k] = memory(results[k].elements * results[k].width);
  kiln_call call = {.batch = BATCH,
                    .arguments = given,
                    .results = made,
                    .arena = {memory(ARENA_BYTES), ARENA_BYTES},
                    .slow_arena = {memory(SLOW_ARENA_BYTES), SLOW_ARENA_BYTES},
                    .pool = NULL,
                    .comm = NULL};
  if (o.threads > 1 && !(call.pool = model_pool((int)o.threads))) {
    fprintf(stderr, "there is no pool of %ld threads\n", o.threads);
    return 1;
  }
  enum { kMostRuns = 1000000 };
  double* times = memory(kMostRuns * sizeof *times);
  measure(&call, original, 3, times, kMostRuns);  // caches, and the choice of the CPU level
  const size_t runs = measure(&call, original, o.runs, times, kMostRuns);
  qsort(times, runs, sizeof *times, by_value);
  double sum = 0;
  for (size_t k = 0; k < runs; ++k) sum += times[k];
  const double mean = sum / (double)runs, median = times[runs / 2], p90 = times[runs * 9 / 10];
  printf(o.json ? "{\"name\":\"%s\",\"build\":\"%s\",\"batch\":%d,\"threads\":%ld,\"runs\":%zu,\"min_us\":%.3f,"
                  "\"median_us\":%.3f,\"mean_us\":%.3f,\"p90_us\":%.3f}\n"
                : "%s (%s), batch %d, %ld threads: %zu runs, least %.3f us, median %.3f us, mean %.3f us, 90%% within "
                  "%.3f us\n",
         NAME, BUILD, (int)BATCH, o.threads, runs, times[0], median, mean, p90);
  return 0;
}
