#include "check.h"

#include <math.h>
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

int pack_check(const struct pack_model* m, int argc, char** argv) {
  int need_gpu = 0, repeat = 20;
  for (int k = 1; k < argc; ++k) {
    if (!strcmp(argv[k], "--need-gpu")) need_gpu = 1;
    if (!strncmp(argv[k], "--repeat=", 9)) repeat = atoi(argv[k] + 9);
    if (!strcmp(argv[k], "--help")) {
      printf(
          "usage: %s [--need-gpu] [--repeat=N]\n%s on the CPU and on GPU 0: compares the results, prints times in us\n",
          argv[0], m->name);
      return 0;
    }
  }
  if (repeat < 1) repeat = 1;
  void **inputs = calloc((size_t)m->arguments + 1, sizeof(void*)),
       **cpu_in = calloc((size_t)m->arguments + 1, sizeof(void*)),
       **cpu_out = calloc((size_t)m->results + 1, sizeof(void*)),
       **dev_in = calloc((size_t)m->arguments + 1, sizeof(void*)),
       **dev_out = calloc((size_t)m->results + 1, sizeof(void*));
  if (!inputs || !cpu_in || !cpu_out || !dev_in || !dev_out) return 3;
  for (int k = 0; k < m->arguments; ++k) {
    inputs[k] = room(m->argument[k].bytes);
    cpu_in[k] = room(m->argument[k].bytes);
    fill(&m->argument[k], inputs[k]);
    memcpy(cpu_in[k], inputs[k], (size_t)m->argument[k].bytes);
  }
  for (int k = 0; k < m->results; ++k)
    cpu_out[k] = m->result[k].alias >= 0 ? cpu_in[m->result[k].alias] : room(m->result[k].bytes);
  const double start = now_us();
  if (m->run(cpu_in, cpu_out, room((int64_t)m->arena_bytes), NULL)) {
    printf("FAIL %s: the CPU program failed\n", m->name);
    return 1;
  }
  const double cpu_us = now_us() - start;
  char error[256] = "";
  void* gpu = NULL;
  if (m->create(&gpu, 0, NULL, error, sizeof error)) {
    printf("%s %s: CPU %.0f us; no GPU: %s\n", need_gpu ? "FAIL" : "ONLY-CPU", m->name, cpu_us, error);
    return need_gpu;
  }
  int bad = 0;
  double worst = 0, median[2] = {0, 0};
  double* times = calloc((size_t)repeat, sizeof *times);
  for (int k = 0; k < m->arguments; ++k) dev_in[k] = m->malloc(gpu, (size_t)m->argument[k].bytes);
  for (int k = 0; k < m->results; ++k)
    dev_out[k] = m->result[k].alias >= 0 ? dev_in[m->result[k].alias] : m->malloc(gpu, (size_t)m->result[k].bytes);
  for (int graphs = 0; graphs < 2 && !bad; ++graphs) {
    m->set_graphs(gpu, graphs);
    for (int r = -3; r < repeat && !bad; ++r) {
      if (r == -3)
        for (int k = 0; k < m->arguments; ++k)
          bad |= m->to_device(gpu, dev_in[k], inputs[k], (size_t)m->argument[k].bytes);
      bad |= m->wait(gpu);
      const double t = now_us();
      bad |= m->run_gpu(gpu, dev_in, dev_out, NULL);
      bad |= m->wait(gpu);
      if (r >= 0) times[r] = now_us() - t;
      for (int k = 0; k < m->results && r == -3 && !bad; ++k) {
        void* got = room(m->result[k].bytes);
        bad |= m->to_host(gpu, got, dev_out[k], (size_t)m->result[k].bytes);
        const double d = difference(&m->result[k], cpu_out[k], got);
        if (!(d <= limit(&m->result[k]))) {
          printf("FAIL %s: result %d differs by %.3g of its largest value (graphs %s)\n", m->name, k, d,
                 graphs ? "on" : "off");
          bad = 1;
        }
        worst = fmax(worst, d);
        free(got);
      }
    }
    qsort(times, (size_t)repeat, sizeof *times, compare_doubles);
    median[graphs] = times[repeat / 2];
  }
  if (bad)
    printf("FAIL %s: %s\n", m->name, m->error(gpu));
  else
    printf("PASS %s: CPU %.0f us, GPU %.1f us, with graphs %.1f us, worst difference %.2g\n", m->name, cpu_us,
           median[0], median[1], worst);
  m->destroy(gpu);
  return bad;
}
