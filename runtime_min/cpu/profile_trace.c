// <model>_profile_write_trace: the events in the format of Chrome's trace viewer, which Perfetto reads.
#include <stdio.h>

#include "runtime_min/cpu/profile.h"

enum { kMostThreads = 256 };  // that have numbers of their own

static void put_text(FILE* f, const char* s) {
  fputc('"', f);
  for (; *s; ++s) {
    if (*s == '"' || *s == '\\') fputc('\\', f);
    if ((unsigned char)*s >= ' ') fputc(*s, f);
  }
  fputc('"', f);
}

static int number_of(uint64_t thread, uint64_t* known, int* count) {
  for (int k = 0; k < *count; ++k)
    if (known[k] == thread) return k + 1;
  if (*count == kMostThreads) return kMostThreads + 1;
  known[(*count)++] = thread;
  return *count;
}

// Moments are rounded, not durations: what is nested or follows does so in whole nanoseconds too.
static void put_event(FILE* f, const kiln_profile_event* e, uint64_t origin, double scale, int thread) {
  const kiln_profile_op* op = &kiln_model_ops[e->entry];
  const long long begin = (long long)((double)(e->begin - origin) * scale + 0.5);
  const long long ns = (long long)((double)(e->end - origin) * scale + 0.5) - begin;
  fprintf(f, "{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%lld.%03lld,\"dur\":%lld.%03lld,\"cat\":", thread, begin / 1000,
          begin % 1000, ns / 1000, ns % 1000);
  put_text(f, e->part ? "part" : op->kind);
  fputs(",\"name\":", f);
  put_text(f, *op->op_name ? op->op_name : op->name);
  fputs(",\"args\":{\"instruction\":", f);
  put_text(f, op->name);
  fputs(",\"opcode\":", f);
  put_text(f, op->opcode);
  fputs(",\"source\":", f);
  put_text(f, op->source_file);
  fprintf(f, ",\"line\":%lld,\"hlo_line\":%lld,\"flops\":%lld,\"bytes\":%lld}}", (long long)op->source_line,
          (long long)op->hlo_line, (long long)op->flops, (long long)op->bytes);
}

int kiln_model_profile_write_trace(const char* path) {
  const struct kiln_profile_ring* r = &kiln_model_profile_ring;
  FILE* f = fopen(path, "w");
  if (!f) return -1;
  const double scale = kiln_model_profile_ns_per_tick();
  const int64_t count = !r->events ? 0 : r->next < r->room ? r->next : r->room;
  uint64_t threads[kMostThreads], origin = ~(uint64_t)0;
  int known = 0;
  for (int64_t k = 0; k < count; ++k)
    if (r->events[k].begin < origin) origin = r->events[k].begin;
  fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", f);
  for (int64_t k = 0; k < count; ++k) {
    if (k) fputs(",\n", f);
    put_event(f, &r->events[k], origin, scale, number_of(r->events[k].thread, threads, &known));
  }
  fputs("\n]}\n", f);
  const int failed = ferror(f);
  return fclose(f) || failed ? -1 : 0;
}
