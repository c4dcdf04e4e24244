#include "check.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kPred = 1, kF16 = 10, kF32 = 11, kF64 = 12, kC64 = 15, kBf16 = 16, kC128 = 18 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static uint64_t state = 0x9e3779b97f4a7c15u;
static uint32_t next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

// Floats in [-1, 1), integers from 0 to 3: small enough for any index.
static void fill(const struct pack_port* p, unsigned char* to) {
  int64_t n = p->bytes;
  const int wide = p->type == kF64 || p->type == kC128;
  if (p->type == kF32 || p->type == kC64 || wide) {
    n /= wide ? 8 : 4;
    for (int64_t k = 0; k < n; ++k) {
      const double v = (double)next() / 2147483648.0 * 2 - 1;
      if (wide)
        ((double*)to)[k] = v;
      else
        ((float*)to)[k] = (float)v;
    }
  } else if (p->type == kBf16 || p->type == kF16) {
    for (int64_t k = 0; k < n / 2; ++k) {
      const uint16_t sign = (uint16_t)(next() & 0x8000);
      const uint16_t one = p->type == kBf16 ? 0x3f00 : 0x3800;  // from 0.5 on
      ((uint16_t*)to)[k] = (uint16_t)(sign | one | (next() & 0x7f));
    }
  } else {
    memset(to, 0, (size_t)n);
    int width = 1;  // of an element: integers are small, so the lowest byte of each is all there is
    if (p->type == 4 || p->type == 8) width = 4;
    if (p->type == 5 || p->type == 9) width = 8;
    if (p->type == 3 || p->type == 7) width = 2;
    for (int64_t k = 0; k < n; k += width) to[k] = (unsigned char)(p->type == kPred ? next() & 1 : next() & 3);
  }
}

static double value(const struct pack_port* p, const void* data, int64_t k) {
  uint32_t bits;
  float f;
  switch (p->type) {
    case kF64:
    case kC128:
      return ((const double*)data)[k];
    case kF32:
    case kC64:
      return (double)((const float*)data)[k];
    case kBf16:
      bits = (uint32_t)((const uint16_t*)data)[k] << 16;
      memcpy(&f, &bits, sizeof f);
      return (double)f;
    case kF16: {
      const uint16_t h = ((const uint16_t*)data)[k];
      const int e = h >> 10 & 31, m = h & 1023;
      const double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
      return h & 0x8000 ? -v : v;
    }
    default:
      return (double)((const unsigned char*)data)[k];
  }
}

// The largest difference, as a part of the largest value; integers differ by 1 or not at all.
static double difference(const struct pack_port* p, const void* a, const void* b) {
  int64_t n = p->bytes;
  if (p->type == kF64 || p->type == kC128)
    n /= 8;
  else if (p->type == kF32 || p->type == kC64)
    n /= 4;
  else if (p->type == kBf16 || p->type == kF16)
    n /= 2;
  else
    return memcmp(a, b, (size_t)n) ? 1 : 0;
  double worst = 0, largest = 0;
  for (int64_t k = 0; k < n; ++k) {
    const double x = value(p, a, k), y = value(p, b, k);
    if (isfinite(x)) largest = fmax(largest, fabs(x));
    if (isnan(x) != isnan(y) || isinf(x) != isinf(y)) return INFINITY;
    if (isfinite(x)) worst = fmax(worst, fabs(x - y));
  }
  return worst / fmax(largest, 1e-30);
}

static double limit(const struct pack_port* p) {
  return p->type == kBf16 ? 3e-2 : p->type == kF16 ? 5e-3 : p->type == kF32 || p->type == kC64 ? 1e-3 : 1e-9;
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void* room(int64_t bytes) {
  void* p = aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);
  if (!p) exit(3);
  return p;
}

// One device of the program, a thread of its own where there are several.
struct device {
  const struct pack_model* m;
  int repeat;
  void *world, *comm;
  void **inputs, **cpu_in, **cpu_out, *gpu;
  int bad;
  double cpu_us, worst, median[2];
  char error[256];
};

static void set_up(struct device* d, const struct pack_model* m) {
  const size_t arguments = (size_t)m->arguments + 1, results = (size_t)m->results + 1;
  d->m = m;
  d->inputs = calloc(arguments, sizeof(void*));
  d->cpu_in = calloc(arguments, sizeof(void*));
  d->cpu_out = calloc(results, sizeof(void*));
  if (!d->inputs || !d->cpu_in || !d->cpu_out) exit(3);
  state = 0x9e3779b97f4a7c15u;  // every device is given the same
  for (int k = 0; k < m->arguments; ++k) {
    d->inputs[k] = room(m->argument[k].bytes);
    d->cpu_in[k] = room(m->argument[k].bytes);
    fill(&m->argument[k], d->inputs[k]);
    memcpy(d->cpu_in[k], d->inputs[k], (size_t)m->argument[k].bytes);
  }
  for (int k = 0; k < m->results; ++k)
    d->cpu_out[k] = m->result[k].alias >= 0 ? d->cpu_in[m->result[k].alias] : room(m->result[k].bytes);
}

// The others would wait for one that has failed.
static void give_up(struct device* d) {
  d->bad = 1;
  if (d->world) d->m->world_abort(d->world);
}

static void* on_cpu(void* device) {
  struct device* d = device;
  void* arena = room((int64_t)d->m->arena_bytes);
  const double start = now_us();
  if (d->m->run(d->cpu_in, d->cpu_out, arena, d->comm)) give_up(d);
  d->cpu_us = now_us() - start;
  free(arena);
  return NULL;
}

static int compare(struct device* d, void* const* on_device, int graphs) {
  const struct pack_model* m = d->m;
  int bad = 0;
  for (int k = 0; k < m->results && !bad; ++k) {
    void* got = room(m->result[k].bytes);
    bad = m->to_host(d->gpu, got, on_device[k], (size_t)m->result[k].bytes);
    const double far = difference(&m->result[k], d->cpu_out[k], got);
    if (!bad && !(far <= limit(&m->result[k]))) {
      printf("FAIL %s: result %d differs by %.3g of its largest value (graphs %s)\n", m->name, k, far,
             graphs ? "on" : "off");
      bad = 1;
    }
    d->worst = fmax(d->worst, far);
    free(got);
  }
  return bad;
}

static void* on_gpu(void* device) {
  struct device* d = device;
  const struct pack_model* m = d->m;
  void **in = calloc((size_t)m->arguments + 1, sizeof(void*)), **out = calloc((size_t)m->results + 1, sizeof(void*));
  double* times = calloc((size_t)d->repeat, sizeof *times);
  if (!in || !out || !times) exit(3);
  if (d->comm) m->set_comm(d->gpu, d->comm);
  int bad = 0;
  for (int k = 0; k < m->arguments; ++k) in[k] = m->malloc(d->gpu, (size_t)m->argument[k].bytes);
  for (int k = 0; k < m->results; ++k)
    out[k] = m->result[k].alias >= 0 ? in[m->result[k].alias] : m->malloc(d->gpu, (size_t)m->result[k].bytes);
  for (int graphs = 0; graphs < 2 && !bad; ++graphs) {
    m->set_graphs(d->gpu, graphs);
    for (int r = -3; r < d->repeat && !bad; ++r) {
      if (r == -3)
        for (int k = 0; k < m->arguments; ++k)
          bad |= m->to_device(d->gpu, in[k], d->inputs[k], (size_t)m->argument[k].bytes);
      bad |= m->wait(d->gpu);
      const double t = now_us();
      bad |= m->run_gpu(d->gpu, in, out, NULL);
      bad |= m->wait(d->gpu);
      if (r >= 0) times[r] = now_us() - t;
      if (r == -3 && !bad) bad = compare(d, out, graphs);
    }
    qsort(times, (size_t)d->repeat, sizeof *times, compare_doubles);
    d->median[graphs] = times[d->repeat / 2];
  }
  for (int k = 0; k < m->arguments; ++k) m->free(d->gpu, in[k]);
  for (int k = 0; k < m->results; ++k)
    if (m->result[k].alias < 0) m->free(d->gpu, out[k]);
  if (bad) {
    snprintf(d->error, sizeof d->error, "%s", m->error(d->gpu));
    give_up(d);
  }
  free(in);
  free(out);
  free(times);
  return NULL;
}

// Runs `f` for every device at once; whether one failed.
static int each(struct device* devices, int count, void* (*f)(void*)) {
  pthread_t* threads = calloc((size_t)count, sizeof *threads);
  if (!threads) exit(3);
  for (int k = 1; k < count; ++k)
    if (pthread_create(&threads[k], NULL, f, &devices[k])) exit(3);
  f(&devices[0]);
  int bad = devices[0].bad;
  for (int k = 1; k < count; ++k) {
    pthread_join(threads[k], NULL);
    bad |= devices[k].bad;
  }
  free(threads);
  return bad;
}

int pack_check(const struct pack_model* m, int argc, char** argv) {
  int need_gpu = 0, repeat = 20;
  for (int k = 1; k < argc; ++k) {
    if (!strcmp(argv[k], "--need-gpu")) need_gpu = 1;
    if (!strncmp(argv[k], "--repeat=", 9)) repeat = atoi(argv[k] + 9);
    if (!strcmp(argv[k], "--help")) {
      printf(
          "usage: %s [--need-gpu] [--repeat=N]\n%s on the CPU and on the GPU: compares the results, prints times in "
          "us\n",
          argv[0], m->name);
      return 0;
    }
  }
  struct device* devices = calloc((size_t)m->devices, sizeof *devices);
  if (!devices) return 3;
  void* world = m->world_create ? m->world_create(m->devices) : NULL;
  for (int k = 0; k < m->devices; ++k) {
    set_up(&devices[k], m);
    devices[k].repeat = repeat < 1 ? 1 : repeat;
    devices[k].world = world;
    devices[k].comm = world ? m->world_comm(world, k) : NULL;
  }
  if (each(devices, m->devices, on_cpu)) {
    printf("FAIL %s: the CPU program failed\n", m->name);
    return 1;
  }
  for (int k = 0; k < m->devices; ++k) {
    void* const own_stream = (void*)(intptr_t)-1;
    char error[1024] = "";
    if (m->create(&devices[k].gpu, k, own_stream, error, sizeof error) &&
        m->create(&devices[k].gpu, 0, own_stream, error, sizeof error)) {
      printf("%s %s: CPU %.0f us; no GPU: %s\n", need_gpu ? "FAIL" : "ONLY-CPU", m->name, devices[0].cpu_us, error);
      return need_gpu;
    }
  }
  const int bad = each(devices, m->devices, on_gpu);
  double worst = 0;
  for (int k = 0; k < m->devices; ++k) {
    worst = fmax(worst, devices[k].worst);
    if (devices[k].bad) printf("FAIL %s: device %d: %s\n", m->name, k, devices[k].error);
    m->destroy(devices[k].gpu);
  }
  if (!bad)
    printf("PASS %s: CPU %.0f us, GPU %.1f us, with graphs %.1f us, worst difference %.2g\n", m->name,
           devices[0].cpu_us, devices[0].median[0], devices[0].median[1], worst);
  return bad;
}
