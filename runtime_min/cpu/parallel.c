// Splits a kernel's units among the threads of a pool. Each thread has a share of its own, the same one kernel after
// kernel as far as possible: what it wrote lies in its cache. Who is done takes pieces of the shares of
// others that are late; which thread computes a unit never changes its result.
#include <stdint.h>

#include "runtime_min/abi.h"
#include "runtime_min/cpu/fp_environment.h"

enum { kMostShares = 128, kSeats = 64, kPieces = 4 };

// A cache line each: they are what threads hand to each other.
struct share {
  _Alignas(64) int64_t next, end;  // units that nobody has taken
  int64_t taken;                   // by a thread, as its own
};

struct job {
  void (*fn)(void*, int64_t, int64_t);
  void* args;
  int64_t shares, piece;
  int64_t helpers;  // submitted and not finished
  unsigned mxcsr;   // of the run, which every piece runs under
  struct share share[kMostShares];
};

// A number for each thread that has helped; kSeats if there are too many.
static int64_t seat(void) {
  static void* seats[kSeats];
  void* const self = __builtin_thread_pointer();
  for (int64_t k = 0; k < kSeats; ++k) {
    void* other = __atomic_load_n(&seats[k], __ATOMIC_RELAXED);
    if (other == self) return k;
    if (!other && __atomic_compare_exchange_n(&seats[k], &other, self, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return k;
  }
  return kSeats;
}

// The calling thread has the first share, and helpers one of the others by their seats.
static int64_t claim(struct job* j) {
  const int64_t others = j->shares - 1, wish = seat() % others;
  for (int64_t k = 0; k < others; ++k) {
    const int64_t place = 1 + (wish + k) % others;
    if (!__atomic_exchange_n(&j->share[place].taken, 1, __ATOMIC_RELAXED)) return place;
  }
  return 0;
}

static int is_left(const struct share* s) { return __atomic_load_n(&s->next, __ATOMIC_RELAXED) < s->end; }

static void compute(struct job* j, struct share* s) {
  while (is_left(s)) {
    const int64_t from = __atomic_fetch_add(&s->next, j->piece, __ATOMIC_RELAXED);
    if (from >= s->end) return;
    j->fn(j->args, from, from + j->piece < s->end ? from + j->piece : s->end);
  }
}

// Shares that are done at nearly the same time are the rule. To take the last piece of another's moves its lines from
// one cache to the other and, with the next kernel, back; so who is done first waits for a while. The caller looks at
// what helpers write at their end alone.
static void work(struct job* j, int64_t own) {
  enum { kPatience = 4000, kPauses = 8 };  // cycles
  compute(j, &j->share[own]);
  const uint64_t end = __builtin_ia32_rdtsc();
  while (own == 0 && __builtin_ia32_rdtsc() - end < kPatience) {
    if (!__atomic_load_n(&j->helpers, __ATOMIC_ACQUIRE)) return;
    __builtin_ia32_pause();
  }
  for (int64_t k = 1; k < j->shares; ++k) {
    struct share* s = &j->share[own + k < j->shares ? own + k : own + k - j->shares];
    while (own != 0 && is_left(s) && __builtin_ia32_rdtsc() - end < kPatience)
      for (int pause = 0; pause < kPauses; ++pause) __builtin_ia32_pause();
    compute(j, s);
  }
}

static void help(void* arg) {
  struct job* j = arg;
  struct fp_environment threads_own;
  fp_enter(&threads_own, j->mxcsr, 1);
  work(j, claim(j));
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
  if (threads > kMostShares) threads = kMostShares;
  if (threads <= 1) {
    fn(args, 0, units);
    return;
  }
  struct job j;
  j.fn = fn;
  j.args = args;
  j.shares = threads;
  j.piece = units / (threads * kPieces) + (units < threads * kPieces);
  j.helpers = threads - 1;
  j.mxcsr = __builtin_ia32_stmxcsr();
  const int64_t each = units / threads, more = units % threads;
  for (int64_t k = 0, from = 0; k < threads; ++k) {
    const int64_t end = from + each + (k < more);
    j.share[k].next = from;
    j.share[k].end = end;
    j.share[k].taken = k == 0;
    from = end;
  }
  for (int64_t k = 1; k < threads; ++k) pool->submit(pool->self, help, &j);
  work(&j, 0);
  while (__atomic_load_n(&j.helpers, __ATOMIC_ACQUIRE) > 0) pool->help(pool->self);
}
