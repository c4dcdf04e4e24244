// Exchanges of devices that are threads of one process: each reads the others' arrays where they are, or, of small
// ones, the copies that they leave.
//
// Cost: of an all-reduce, 2 (n - 1) / n of the bytes for each device, and no memory beside operand and result. Small
//   arrays meet once: who has come leaves with the result. Large ones meet again when all are done.
// Guarantees: once all members have come no exchange fails, and while their arrays are read nobody leaves; until then
//   every wait ends, with a failure of any device or after the time limit.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_min/coll/round.h"

enum { kAwake = 200000 };  // nanoseconds for which a thread that waits offers its processor to others, before it sleeps

static int same(const struct round* r, const kiln_exchange* x, const int64_t* group, int beside) {
  if (r->kind != x->kind || r->members != x->members || r->arrays != x->arrays || r->beside != beside) return 0;
  return !memcmp(r->bytes, x->bytes, (uint64_t)x->arrays * sizeof *x->bytes) &&
         !memcmp(r->group, group, (uint64_t)x->members * sizeof *group);
}

static int64_t lines(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Of one member's arrays and the table of them; 0: they are too large to be copied.
static int64_t copy_bytes(const kiln_exchange* x) {
  int64_t each = lines(x->arrays * (int64_t)sizeof(void*));
  for (int64_t a = 0; a < x->arrays && each * x->members <= KILN_SMALL_EXCHANGE; ++a) each += lines(x->bytes[a]);
  return each * x->members <= KILN_SMALL_EXCHANGE ? each : 0;
}

static struct round* new_round(const kiln_exchange* x, const int64_t* group, int beside) {
  const int64_t tables = x->members * (int64_t)sizeof *group + x->arrays * (int64_t)sizeof *x->bytes;
  const int64_t head = (int64_t)sizeof(struct round) + x->members * (int64_t)sizeof(struct party);
  const int64_t each = beside ? lines(x->arrays * 2 * (int64_t)sizeof(void*)) : copy_bytes(x);
  struct round* r = malloc((uint64_t)(head + tables + kLine + each * x->members));
  if (!r) return 0;
  memset(r, 0, (uint64_t)head);
  r->what = x;
  r->beside = beside;
  r->kind = x->kind;
  r->members = x->members;
  r->arrays = x->arrays;
  r->group = (int64_t*)(r->party + x->members);
  r->bytes = r->group + x->members;
  memcpy(r->group, group, (uint64_t)x->members * sizeof *group);
  memcpy(r->bytes, x->bytes, (uint64_t)x->arrays * sizeof *x->bytes);
  if (each) r->copies = (char*)(((uintptr_t)(r->bytes + x->arrays) + kLine - 1) / kLine * kLine);
  r->member_bytes = each;
  if (beside) kiln_model_world_cut_in_pieces(r);
  return r;
}

// The first such round, in order, that the member at `at` has not come to yet; null if memory runs out.
static struct round* find(struct kiln_world* w, const kiln_exchange* x, const int64_t* group, int64_t at, int beside) {
  struct round** end = &w->rounds;
  for (; *end; end = &(*end)->next)
    if (same(*end, x, group, beside) && !(*end)->party[at].here) return *end;
  return *end = new_round(x, group, beside);
}

// Copies of the arrays, for a member that will not stay until all have read them.
static const void* const* copied(const struct round* r, int64_t at, const void* const* arrays) {
  char** table = (char**)(r->copies + at * r->member_bytes);
  char* next = (char*)table + lines(r->arrays * (int64_t)sizeof *table);
  for (int64_t a = 0; a < r->arrays; ++a) {
    table[a] = next;
    memcpy(next, arrays[a], (uint64_t)r->bytes[a]);
    next += lines(r->bytes[a]);
  }
  return (const void* const*)table;
}

static void pause_a_little(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000 + t.tv_nsec;
}

// Whether the counter got there before the thread has to sleep. On a busy machine the processor comes back late, and
// sleeping threads come first: so the time counts, not the turns.
int kiln_model_world_reached(const struct kiln_world* w, const _Atomic int64_t* counter, int64_t count) {
  for (int k = 0; k < w->looks; ++k) {
    if (atomic_load_explicit(counter, memory_order_acquire) >= count) return 1;
    pause_a_little();
  }
  const int64_t until = now() + kAwake;
  do {
    if (atomic_load_explicit(counter, memory_order_acquire) >= count) return 1;
    sched_yield();
  } while (now() < until);
  return 0;
}

// Waits for those that are at work: they only copy and combine, so there is no limit of time.
static void meet(struct kiln_world* w, _Atomic int64_t* counter, int64_t members) {
  const int last = atomic_fetch_add(counter, 1) + 1 == members;
  if (last ? !atomic_load(&w->sleepers) : kiln_model_world_reached(w, counter, members)) return;
  pthread_mutex_lock(&w->lock);
  ++w->sleepers;
  if (last) pthread_cond_broadcast(&w->changed);
  while (atomic_load(counter) < members) pthread_cond_wait(&w->changed, &w->lock);
  --w->sleepers;
  pthread_mutex_unlock(&w->lock);
}

// All members are there, or the status with which the wait failed.
int kiln_model_world_assemble(struct kiln_world* w, struct round* r, int64_t members) {
  if (kiln_model_world_reached(w, &r->arrived, members)) return 0;
  pthread_mutex_lock(&w->lock);
  const struct timespec deadline = kiln_model_world_deadline(w);
  ++w->sleepers;
  while (r->arrived < members && !w->failure)
    if (!kiln_model_world_wait(w, &deadline) && r->arrived < members) kiln_model_world_fail(w, KILN_TIMEOUT);
  --w->sleepers;
  const int failed = r->arrived < members ? w->failure : 0;
  pthread_mutex_unlock(&w->lock);
  return failed;
}

// Each combines a part of every array; the others fetch it.
static void all_reduce(struct kiln_world* w, struct round* r, const kiln_exchange* x, int64_t at) {
  for (int64_t a = 0; a < x->arrays; ++a) {
    const int64_t from = kiln_model_world_part(x, a, at), to = kiln_model_world_part(x, a, at + 1);
    kiln_model_world_combine(x, r->party, a, from, to, (char*)r->party[at].results[a] + from);
  }
  meet(w, &r->combined, x->members);
  for (int64_t a = 0; a < x->arrays; ++a) kiln_model_world_collect(x, r->party, a, at, 0, x->bytes[a]);
}

static void fetch_all(const kiln_exchange* x, const struct party* party, int64_t at) {
  for (int64_t a = 0; a < x->arrays; ++a)
    kiln_model_world_fetch(x, party, a, at, 0, kiln_model_world_result_bytes(x, a));
}

// The arrays and results of a member whose tables do not stay.
static void keep_tables(struct round* r, int64_t at, const void* const* arrays, void* const* results) {
  void** table = (void**)(r->copies + at * r->member_bytes);
  for (int64_t a = 0; a < r->arrays; ++a) {
    table[a] = (void*)arrays[a];
    table[r->arrays + a] = results[a];
  }
  r->party[at].arrays = (const void* const*)table;
  r->party[at].results = table + r->arrays;
}

// Without memory no run goes on: the others would take this device's next exchange for this one.
struct round* kiln_model_world_arrive(struct kiln_world* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                                      const void* const* arrays, void* const* results, int beside, int* failed) {
  pthread_mutex_lock(&w->lock);
  // Once a run has failed nobody meets: the devices that still come fail as those that waited did.
  *failed = w->failure;
  struct round* r = *failed ? 0 : find(w, x, group, at, beside);
  if (r) {
    struct party* p = &r->party[at];
    p->here = 1;
    p->results = results;
    p->arrays = r->copies && !beside ? copied(r, at, arrays) : arrays;
    if (beside) keep_tables(r, at, arrays, results);
    p->mxcsr = float_environment();
    if (++r->arrived == x->members) {
      if (beside) kiln_model_world_wake_helpers(w, r);
      if (w->sleepers) pthread_cond_broadcast(&w->changed);
    }
  } else if (!*failed) {
    kiln_model_world_fail(w, KILN_COMMUNICATION);
    *failed = KILN_COMMUNICATION;
  }
  pthread_mutex_unlock(&w->lock);
  return r;
}

int64_t kiln_model_world_place(const int64_t* group, int64_t members, int64_t device) {
  int64_t at = 0;
  while (at < members && group[at] != device) ++at;
  return at;
}

void kiln_model_world_end_round(struct kiln_world* w, struct round* r) {
  struct round** p = &w->rounds;
  while (*p != r) p = &(*p)->next;
  *p = r->next;
  free(r);
}

static void leave(struct kiln_world* w, struct round* r) {
  const int64_t members = r->members;  // once counted, another member may free the round
  if (atomic_fetch_add(&r->left, 1) + 1 < members) return;
  pthread_mutex_lock(&w->lock);
  kiln_model_world_end_round(w, r);
  pthread_mutex_unlock(&w->lock);
}

int kiln_model_world_exchange(void* self, int64_t device, const kiln_exchange* x, const int64_t* group,
                              const void* const* arrays, void* const* results) {
  struct kiln_world* w = self;
  const int64_t at = kiln_model_world_place(group, x->members, device);
  if (at == x->members) return KILN_COMMUNICATION;
  int failed = 0;
  struct round* r = kiln_model_world_arrive(w, x, group, at, arrays, results, 0, &failed);
  if (!r) return failed;
  if (r->copies) return kiln_model_world_take(w, device, r, x, results);
  failed = kiln_model_world_assemble(w, r, x->members);
  if (failed) return failed;
  if (x->kind == KILN_ALL_REDUCE)
    all_reduce(w, r, x, at);
  else
    fetch_all(x, r->party, at);
  meet(w, &r->done, x->members);
  leave(w, r);
  return 0;
}

void* kiln_model_world_offer(void* self, int64_t device, const kiln_exchange* x, const int64_t* group,
                             const void* const* arrays, void* const* results) {
  struct kiln_world* w = self;
  const int64_t at = kiln_model_world_place(group, x->members, device);
  const int beside = copy_bytes(x) == 0;
  if (at == x->members || (beside && !results)) return 0;
  if (beside) kiln_model_world_start_helper(w, device);
  int failed = 0;
  return kiln_model_world_arrive(w, x, group, at, arrays, results, beside, &failed);
}

int kiln_model_world_take(void* self, int64_t device, void* offered, const kiln_exchange* x, void* const* results) {
  struct kiln_world* w = self;
  struct round* r = offered;
  const int64_t at = kiln_model_world_place(r->group, r->members, device);
  const int failed = kiln_model_world_assemble(w, r, r->members);
  if (failed) return failed;
  if (r->beside) return kiln_model_world_take_beside(w, r, at);
  r->party[at].results = results;
  fetch_all(x, r->party, at);
  leave(w, r);
  return 0;
}

void kiln_model_world_forget_rounds(struct kiln_world* w) {
  while (w->rounds) {
    struct round* next = w->rounds->next;
    free(w->rounds);
    w->rounds = next;
  }
}
