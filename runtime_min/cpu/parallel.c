// Splits a kernel's units among the threads of a pool. Pieces are taken from a shared counter, so a late helper costs
// nothing but itself; which thread computes a unit never changes its result.
#include <stdint.h>

#include "runtime_min/abi.h"
#include "runtime_min/cpu/fp_environment.h"

struct job {
  void (*fn)(void*, int64_t, int64_t);
  void* args;
  int64_t units, piece;
  int64_t next;     // first unit that nobody has taken
  int64_t helpers;  // submitted and not finished
  unsigned mxcsr;   // of the run, which every piece runs under
};

static void work(struct job* j) {
  for (;;) {
    int64_t from = __atomic_fetch_add(&j->next, j->piece, __ATOMIC_RELAXED);
    if (from >= j->units) return;
    int64_t to = from + j->piece < j->units ? from + j->piece : j->units;
    j->fn(j->args, from, to);
  }
}

static void help(void* arg) {
  struct job* j = arg;
  struct fp_environment threads_own;
  fp_enter(&threads_own, j->mxcsr, 1);
  work(j);
  fp_leave(&threads_own);
  // The last touch: the caller's frame holds the job.
  __atomic_fetch_sub(&j->helpers, 1, __ATOMIC_RELEASE);
}

// Calls fn(args, begin, end) for all of [0, units), on at most `limit` threads if limit > 0.
__attribute__((visibility("hidden"))) void kiln_model_parallel(const struct kiln_machine* machine,
                                                               void (*fn)(void*, int64_t, int64_t), void* args,
                                                               int64_t units, int64_t limit) {
  const struct kiln_pool* pool = machine->pool;
  int64_t threads = pool ? pool->size(pool->self) : 1;
  if (limit > 0 && threads > limit) threads = limit;
  if (threads > units) threads = units;
  if (threads <= 1) {
    fn(args, 0, units);
    return;
  }
  int64_t piece = units / (threads * 4);
  struct job j = {fn, args, units, piece > 0 ? piece : 1, 0, threads - 1, __builtin_ia32_stmxcsr()};
  for (int64_t k = 1; k < threads; ++k) pool->submit(pool->self, help, &j);
  work(&j);
  while (__atomic_load_n(&j.helpers, __ATOMIC_ACQUIRE) > 0) pool->help(pool->self);
}
