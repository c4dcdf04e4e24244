// The main program of `kiln tune`: measures every candidate of every subject on a GPU and writes what it found.
//
// A worker process holds the GPU and tells the first process of each step, so that a candidate that crashes, hangs or
// breaks the device's context costs itself only: it is noted as failed, and a new worker goes on behind it.
// kiln renames kiln_model_*.
#define _POSIX_C_SOURCE 200809L
#include "runtime_min/gpu/tune.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime_min/gpu/model.h"
#include "runtime_min/gpu/tune_numbers.inc"

extern const struct kiln_tune_program kiln_model_tune_program;

enum failure { kValid, kUnknown, kRedzone, kWrong, kDisqualified };
static const char* const kFailures[] = {"", "unknown", "redzone modified", "wrong result", "disqualified"};

struct options {
  const char* out;
  int device, level, rounds, quiet;
  size_t redzone;
  double least_ms;
};

// What the worker tells.
enum what { kDevice, kBegin, kEnd, kBroken };
struct note {
  int32_t what, subject, candidate, failure;
  double microseconds;
  int64_t version;  // of the library whose algorithm `words` is; 0: it is kiln's own
  uint64_t words[8];
  char text[160], more[160];
};

// What the entry does at each run: the candidate, that often.
static const struct kiln_tune_candidate* running;
static int64_t repeats;

int32_t kiln_model_gpu_entry(void* const* arguments, void* const* results, void* arena, const void* gpu,
                             const void* comm) {
  (void)results, (void)arena, (void)comm;
  const struct kiln_gpu* t = gpu;
  int32_t status = 0;
  for (int64_t k = 0; k < repeats && !status; ++k)
    status =
        running->launch ? t->launch(t->self, running->launch, arguments) : t->call(t->self, running->call, arguments);
  return status;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

// The arrays of one subject: on the device between two red zones, and what the host knows of them.
struct arrays {
  const struct kiln_tune_subject* subject;
  size_t zone;
  char **allocated, **device, **init, **reference;
  char* pattern;
  int written;
};

enum { kZoneByte = 0xb7, kAlign = 256 };

static int set_up_arrays(struct arrays* a, struct kiln_model_gpu* g, const struct kiln_tune_subject* s, int32_t number,
                         const struct options* o) {
  const size_t n = (size_t)s->arrays;
  a->subject = s;
  a->zone = o->level >= 4 ? (o->redzone + kAlign - 1) / kAlign * kAlign : 0;
  a->allocated = calloc(n, sizeof(char*));
  a->device = calloc(n, sizeof(char*));
  a->init = calloc(n, sizeof(char*));
  a->reference = calloc(n, sizeof(char*));
  a->pattern = malloc(a->zone + 1);
  if (!a->allocated || !a->device || !a->init || !a->reference || !a->pattern) return 0;
  memset(a->pattern, kZoneByte, a->zone);
  for (size_t k = 0; k < n; ++k) {
    const size_t bytes = (size_t)s->array[k].bytes;
    a->allocated[k] = kiln_model_gpu_malloc(g, bytes + 2 * a->zone);
    a->init[k] = calloc(bytes + 1, 1);
    if (!a->allocated[k] || !a->init[k]) return 0;
    a->device[k] = a->allocated[k] + a->zone;
    if (s->array[k].kind == KILN_TUNE_OPERAND && o->level >= 2)
      fill_random(a->init[k], s->array[k].type, bytes, (uint64_t)number * 1000 + k + 1);
    else if (s->array[k].kind == KILN_TUNE_RESULT)
      memset(a->init[k], 0xcd, bytes);  // a result that nobody writes is seen
  }
  return 1;
}

static void free_arrays(struct arrays* a, struct kiln_model_gpu* g) {
  for (int64_t k = 0; k < a->subject->arrays; ++k) {
    if (a->allocated) kiln_model_gpu_free(g, a->allocated[k]);
    if (a->init) free(a->init[k]);
    if (a->reference) free(a->reference[k]);
  }
  free(a->allocated), free(a->device), free(a->init), free(a->reference), free(a->pattern);
}

static int32_t write_arrays(struct arrays* a, struct kiln_model_gpu* g) {
  int32_t status = 0;
  for (int64_t k = 0; k < a->subject->arrays && !status; ++k) {
    const size_t bytes = (size_t)a->subject->array[k].bytes;
    status = kiln_model_gpu_to_device(g, a->device[k], a->init[k], bytes);
    if (!status && a->zone) status = kiln_model_gpu_to_device(g, a->allocated[k], a->pattern, a->zone);
    if (!status && a->zone) status = kiln_model_gpu_to_device(g, a->device[k] + bytes, a->pattern, a->zone);
  }
  return status ? status : kiln_model_gpu_wait(g);
}

// Finds the first byte of a red zone that changed.
static int32_t check_zones(struct arrays* a, struct kiln_model_gpu* g, struct note* n) {
  char* seen = malloc(a->zone + 1);
  int32_t status = seen ? 0 : 1;
  for (int64_t k = 0; k < a->subject->arrays && !status && !n->failure; ++k)
    for (int after = 0; after < 2 && !status && !n->failure; ++after) {
      const int64_t bytes = a->subject->array[k].bytes;
      status = kiln_model_gpu_to_host(g, seen, after ? a->device[k] + bytes : a->allocated[k], a->zone);
      for (size_t b = 0; b < a->zone && !status && !n->failure; ++b)
        if (seen[b] != a->pattern[b]) {
          n->failure = kRedzone;
          snprintf(n->text, sizeof n->text, "writes %lld bytes %s array %lld of %lld bytes",
                   (long long)(after ? b : a->zone - b), after ? "behind" : "before", (long long)k, (long long)bytes);
        }
    }
  free(seen);
  return status;
}

// Keeps the results as the reference, or compares them with it.
static int32_t check_results(struct arrays* a, struct kiln_model_gpu* g, struct note* n) {
  int32_t status = 0;
  for (int64_t k = 0; k < a->subject->arrays && !status && !n->failure; ++k) {
    const struct kiln_tune_array* array = &a->subject->array[k];
    if (array->kind != KILN_TUNE_RESULT) continue;
    char* got = malloc((size_t)array->bytes + 1);
    if (!got) return 1;
    status = kiln_model_gpu_to_host(g, got, a->device[k], (size_t)array->bytes);
    if (!status && !a->reference[k]) {
      a->reference[k] = got;
      continue;
    }
    if (!status && !agree(got, a->reference[k], array, n->text, sizeof n->text)) n->failure = kWrong;
    free(got);
  }
  return status;
}

static int32_t run_once(struct arrays* a, struct kiln_model_gpu* g, int64_t times, double* microseconds) {
  repeats = times;
  const double start = now_us();
  int32_t status = kiln_model_gpu_run(g, (void* const*)a->device, NULL, NULL);
  if (!status) status = kiln_model_gpu_wait(g);
  *microseconds = (now_us() - start) / (double)times;
  return status;
}

// Runs one candidate: is it right, and how fast. Not 0: the device's context is lost.
static int32_t measure(struct arrays* a, struct kiln_model_gpu* g, int index, int only_reference,
                       const struct options* o, struct note* n) {
  running = &a->subject->candidate[index];
  double us = 0;
  if (o->level >= 3 || !a->written) {
    const int32_t status = write_arrays(a, g);
    if (status) return status;
    a->written = 1;
  }
  if (run_once(a, g, 1, &us)) {
    n->failure = kDisqualified;
    snprintf(n->text, sizeof n->text, "%s", kiln_model_gpu_error(g));
    return kiln_model_gpu_wait(g);
  }
  if (o->level >= 4) {
    int32_t status = check_zones(a, g, n);
    if (!status && !n->failure) status = check_results(a, g, n);
    if (status || n->failure) return status;
  }
  if (only_reference) return 0;
  // As many runs in a row as take the least time worth measuring.
  int64_t times = 1;
  for (us = 0; times < 1 << 20; times *= 2) {
    const int32_t status = run_once(a, g, times, &us);
    if (status) return status;
    if (us * (double)times >= o->least_ms * 1e3) break;
  }
  n->microseconds = us;
  for (int k = 1; k < o->rounds; ++k) {
    const int32_t status = run_once(a, g, times, &us);
    if (status) return status;
    if (us < n->microseconds) n->microseconds = us;
  }
  return 0;
}

static void tell(int pipe, const struct note* n) {
  if (write(pipe, n, sizeof *n) != (ssize_t)sizeof *n) _exit(1);
}

static void work(int pipe, int32_t subject, int32_t candidate, int reference_fails, const struct options* o) {
  enum { kMostSeconds = 120 };
  const struct kiln_tune_program* p = &kiln_model_tune_program;
  struct kiln_model_gpu* g = NULL;
  struct note n = {.what = kDevice};
  if (kiln_model_gpu_create(&g, o->device, KILN_GPU_OWN_STREAM, n.text, sizeof n.text)) {
    n.what = kBroken;
    tell(pipe, &n);
    _exit(1);
  }
  kiln_model_gpu_describe(g, n.text, sizeof n.text, n.more, sizeof n.more);
  tell(pipe, &n);
  for (; subject < p->subjects; ++subject, candidate = 0) {
    const struct kiln_tune_subject* s = &p->subject[subject];
    struct arrays a = {0};
    if (!set_up_arrays(&a, g, s, subject, o)) {
      n = (struct note){.what = kBroken};
      snprintf(n.text, sizeof n.text, "%s", kiln_model_gpu_error(g));
      tell(pipe, &n);
      _exit(1);
    }
    if (candidate > 0 && !reference_fails) {
      struct note ignored = {0};
      if (measure(&a, g, 0, 1, o, &ignored)) _exit(1);
    }
    reference_fails = 0;
    for (; candidate < s->candidates; ++candidate) {
      n = (struct note){.what = kBegin, .subject = subject, .candidate = candidate};
      tell(pipe, &n);
      alarm(kMostSeconds);
      const int32_t lost = measure(&a, g, candidate, 0, o, &n);
      alarm(0);
      if (lost && !n.failure) {
        n.failure = kUnknown;
        snprintf(n.text, sizeof n.text, "%s", kiln_model_gpu_error(g));
      }
      if (!n.failure && s->candidate[candidate].call)
        n.version = kiln_model_gpu_algorithm(g, s->candidate[candidate].call, n.words);
      n.what = kEnd;
      tell(pipe, &n);
      if (lost) _exit(1);
    }
    free_arrays(&a, g);
  }
  kiln_model_gpu_destroy(g);
  _exit(0);
}

static void write_text(FILE* f, const char* name, const char* text) {
  fprintf(f, "%s: \"", name);
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\') fputc('\\', f);
    if (*text == '\n')
      fputs("\\n", f);
    else
      fputc(*text, f);
  }
  fputc('"', f);
}

// Valid ones first, by time.
static int before(const struct note* a, const struct note* b) {
  if (!a->failure != !b->failure) return !a->failure;
  return !a->failure && a->microseconds < b->microseconds;
}

static int write_results(const char* path, struct note** found, const struct note* device) {
  const struct kiln_tune_program* p = &kiln_model_tune_program;
  char part[4096];
  if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part) return 1;
  FILE* f = fopen(part, "w");
  if (!f) return 1;
  fprintf(f, "# What %s measured; for `gpu { tuning_results: ... }` of kiln's configuration.\ndevices {\n  ", p->name);
  write_text(f, "target", p->target);
  fputs("\n  ", f);
  write_text(f, "name", device->text);
  fputs("\n  ", f);
  write_text(f, "versions", device->more);
  for (int64_t s = 0; s < p->subjects; ++s) {
    const int64_t n = p->subject[s].candidates;
    fputs("\n  entries {\n    ", f);
    write_text(f, "key", p->subject[s].key);
    fputs("\n    ", f);
    write_text(f, "hlo", p->subject[s].hlo);
    for (int64_t i = 1; i < n; ++i)
      for (int64_t k = i; k > 0 && before(&found[s][k], &found[s][k - 1]); --k) {
        const struct note t = found[s][k];
        found[s][k] = found[s][k - 1];
        found[s][k - 1] = t;
      }
    for (int64_t k = 0; k < n; ++k) {
      const struct note* c = &found[s][k];
      fprintf(f, "\n    candidates { algorithm: %lld", (long long)p->subject[s].candidate[c->candidate].algorithm);
      if (c->failure) {
        fputc(' ', f);
        write_text(f, "failure", kFailures[c->failure]);
        fputc(' ', f);
        write_text(f, "message", c->text);
      } else {
        fprintf(f, " microseconds: %.3f", c->microseconds);
        if (c->version) {
          fprintf(f, " library_version: %lld library_algorithm: \"", (long long)c->version);
          for (int w = 0; w < 8; ++w) fprintf(f, "%016" PRIx64, c->words[w]);
          fputc('"', f);
        }
      }
      fputs(" }", f);
    }
    fputs("\n  }", f);
  }
  fputs("\n}\n", f);
  const int bad = ferror(f);
  return fclose(f) || bad || rename(part, path);
}

static int usage(const char* program, int code) {
  const struct kiln_tune_program* p = &kiln_model_tune_program;
  fprintf(
      code ? stderr : stdout,
      "usage: %s [--out=FILE] [--device=N] [--level=1..4] [--rounds=N] [--least-ms=X] [--redzone-bytes=N] [--quiet]\n"
      "Measures the products and convolutions of %s on an %s and writes FILE (%s.%s.tuning).\n"
      "  --level  1 times only; 2 random operands; 3 writes them again for each candidate; 4 (default %lld) also\n"
      "           compares results and looks for writes outside the arrays\n"
      "  --rounds best of N (5); --least-ms: what one round takes at least (10)\n",
      program, p->name, p->target, p->name, p->target, (long long)p->level);
  return code;
}

static int read_options(int argc, char** argv, struct options* o) {
  for (int k = 1; k < argc; ++k) {
    const char* value = strchr(argv[k], '=');
    const size_t length = value ? (size_t)(value - argv[k]) : strlen(argv[k]);
    const char* v = value ? value + 1 : "";
    const char* names[] = {"--out", "--device", "--level", "--rounds", "--least-ms", "--redzone-bytes", "--quiet"};
    int which = 0;
    while (which < 7 && (strlen(names[which]) != length || strncmp(argv[k], names[which], length) != 0)) ++which;
    if (which == 7 || (which != 6 && !*v)) return 0;
    if (which == 0) o->out = v;
    if (which == 1) o->device = atoi(v);
    if (which == 2) o->level = atoi(v);
    if (which == 3) o->rounds = atoi(v);
    if (which == 4) o->least_ms = atof(v);
    if (which == 5) o->redzone = (size_t)atoll(v);
    if (which == 6) o->quiet = 1;
  }
  return o->level >= 1 && o->level <= 4 && o->rounds >= 1 && o->device >= 0;
}

int32_t kiln_model_tune(int32_t argc, char** argv) {
  const struct kiln_tune_program* p = &kiln_model_tune_program;
  char path[1024];
  snprintf(path, sizeof path, "%s.%s.tuning", p->name, p->target);
  struct options o = {path, 0, (int)p->level, 5, 0, (size_t)8 << 20, 10};
  for (int k = 1; k < argc; ++k)
    if (!strcmp(argv[k], "--help")) return usage(argv[0], 0);
  if (!read_options(argc, argv, &o)) return usage(argv[0], 2);
  struct note device = {0}, **found = calloc((size_t)p->subjects + 1, sizeof *found);
  if (!found) return 1;
  for (int64_t s = 0; s < p->subjects; ++s) {
    found[s] = calloc((size_t)p->subject[s].candidates + 1, sizeof **found);
    if (!found[s]) return 1;
  }
  int32_t subject = 0, candidate = 0, open = 0;
  while (subject < p->subjects) {
    int ends[2];
    if (pipe(ends)) return 1;
    fflush(NULL);
    const pid_t worker = fork();
    if (worker < 0) return 1;
    if (worker == 0) {
      close(ends[0]);
      work(ends[1], subject, candidate, candidate > 0 && found[subject][0].failure, &o);
    }
    close(ends[1]);
    struct note n;
    int broken = 0, heard = 0;
    while (read(ends[0], &n, sizeof n) == (ssize_t)sizeof n) {
      if (n.what == kDevice) device = n;
      if (n.what == kBroken) {
        fprintf(stderr, "error: %s\n", n.text);
        broken = 1;
      }
      if (n.what == kBegin) {
        subject = n.subject, candidate = n.candidate;
        open = heard = 1;
      }
      if (n.what != kEnd) continue;
      open = 0;
      found[n.subject][n.candidate] = n;
      if (!o.quiet)
        fprintf(stderr, "[%d/%lld] %.60s algorithm %lld: %.3f us %s %s\n", n.subject + 1, (long long)p->subjects,
                p->subject[n.subject].hlo, (long long)p->subject[n.subject].candidate[n.candidate].algorithm,
                n.microseconds, kFailures[n.failure], n.text);
      subject = n.subject, candidate = n.candidate + 1;
      if (candidate == p->subject[subject].candidates) ++subject, candidate = 0;
    }
    close(ends[0]);
    int status = 0;
    waitpid(worker, &status, 0);
    if (broken) return 1;
    if (!open && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (open) {
      struct note* lost = &found[subject][candidate];
      *lost = (struct note){.subject = subject, .candidate = candidate, .failure = kUnknown};
      const int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      snprintf(lost->text, sizeof lost->text, by == SIGALRM ? "no answer in time" : "the process ended (signal %d)",
               by);
      open = 0;
      if (++candidate == p->subject[subject].candidates) ++subject, candidate = 0;
    } else if (!heard) {
      fprintf(stderr, "error: the GPU fails before anything is measured\n");
      return 1;
    }
  }
  int untuned = 0;
  for (int64_t s = 0; s < p->subjects; ++s) {
    int valid = 0;
    for (int64_t k = 0; k < p->subject[s].candidates; ++k) valid += !found[s][k].failure;
    untuned += !valid;
  }
  if (write_results(o.out, found, &device)) {
    fprintf(stderr, "error: cannot write %s\n", o.out);
    return 1;
  }
  printf("%s: %lld measured on %s, %d without a valid algorithm\n", o.out, (long long)p->subjects, device.text,
         untuned);
  return untuned != 0;
}
