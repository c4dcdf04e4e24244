// <model>_profile_*: how often each operation ran, and how long.
#define _POSIX_C_SOURCE 200809L  // clock_gettime
#include "runtime_min/cpu/profile.h"

#include <stddef.h>
#include <time.h>
#include <x86intrin.h>

struct kiln_profile_ring kiln_model_profile_ring;

// A moment by both clocks.
struct moment {
  uint64_t ticks;
  double ns;
};
static struct moment origin;

static struct moment now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (struct moment){__rdtsc(), (double)t.tv_sec * 1e9 + (double)t.tv_nsec};
}

// By how far both clocks went since the counters were reset, at least for a few milliseconds.
double kiln_model_profile_ns_per_tick(void) {
  if (!origin.ticks) origin = now();
  struct moment m;
  do m = now();
  while (m.ns - origin.ns < 5e6);
  return (m.ns - origin.ns) / (double)(m.ticks - origin.ticks);
}

// One run in `sampled_of` is measured; 0: none.
static int64_t sampled_of = 1;
static uint64_t runs;  // since that was said

void kiln_model_profile_sample(int64_t every) {
  __atomic_store_n(&runs, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&sampled_of, every < 0 ? 0 : every, __ATOMIC_RELAXED);
}

// Called as a run begins: whether it is measured. Of each `sampled_of` runs it is one, at a place that looks random, so
// that programs which take turns are all met.
HIDDEN int64_t kiln_model_profile_begins(void) {
  const uint64_t every = (uint64_t)__atomic_load_n(&sampled_of, __ATOMIC_RELAXED);
  if (every <= 1) return (int64_t)every;
  const uint64_t run = __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
  uint64_t place = (run / every + 1) * 0x9e3779b97f4a7c15u;
  place = (place ^ place >> 32) * 0xd6e8feb86659fd93u;
  return run % every == (place >> 32) % every;
}

static uint64_t this_thread(void) {
  uint64_t pointer;
  __asm__("mov %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

void kiln_model_profile_record(int64_t op, uint64_t begin, uint64_t end, int64_t part) {
  struct kiln_profile_counter* c = &kiln_model_profile_counters[op];
  if (part) {
    __atomic_fetch_add(&c->thread_ticks, end - begin, __ATOMIC_RELAXED);
  } else {
    __atomic_fetch_add(&c->calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->ticks, end - begin, __ATOMIC_RELAXED);
  }
  struct kiln_profile_ring* r = &kiln_model_profile_ring;
  if (!r->events) return;
  const int64_t k = __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED);
  r->events[k % r->room] = (kiln_profile_event){op, this_thread(), begin, end, part};
}

void kiln_model_profile_reset(void) {
  for (int64_t k = 0; k < kiln_model_op_count; ++k)
    kiln_model_profile_counters[k] = (struct kiln_profile_counter){0, 0, 0};
  kiln_model_profile_ring.next = 0;
  origin = now();
}

int64_t kiln_model_profile_count(void) { return kiln_model_op_count; }

kiln_profile_entry kiln_model_profile_entry(int64_t k) {
  static const kiln_profile_op none = {"", "", "", "", "", "", 0, 0, -1, 0, 0};
  if (k < 0 || k >= kiln_model_op_count) return (kiln_profile_entry){none, 0, 0, 0};
  const struct kiln_profile_counter c = kiln_model_profile_counters[k];
  const double scale = kiln_model_profile_ns_per_tick(), ns = (double)c.ticks * scale;
  return (kiln_profile_entry){kiln_model_ops[k], c.calls, ns, c.thread_ticks ? (double)c.thread_ticks * scale : ns};
}

void kiln_model_profile_trace(kiln_profile_event* events, int64_t room) {
  kiln_model_profile_ring = (struct kiln_profile_ring){room > 0 ? events : NULL, room, 0};
}
