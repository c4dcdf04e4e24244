// Exchanges of devices that are threads of one process: each reads the others' arrays where they are.
//
// Cost: of an all-reduce, 2 (n - 1) / n of the bytes for each device, and no memory beside operand and result.
// Guarantees: once all members have come nobody leaves before all are done, since they read each other's arrays; until
//   then every wait ends, with a failure of any device or after the time limit.
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_min/coll/world.h"

enum {
  kBlock = 4096,  // bytes that are combined at a time, in the first cache
  kLine = 64,     // of a cache: members write no line together
  kSpins = 2000,  // looks at a counter before the thread sleeps, some microseconds
};

struct party {
  const void* const* arrays;
  void* const* results;
  int here;
};

// One exchange of one group.
struct round {
  struct round* next;
  const kiln_exchange* x;  // of who came first
  const int64_t* group;    // a copy of it
  int64_t gone;
  _Atomic int64_t arrived, combined, done;
  struct party party[];
};

static int same(const struct round* r, const kiln_exchange* x, const int64_t* group) {
  if (r->x->kind != x->kind || r->x->members != x->members || r->x->arrays != x->arrays) return 0;
  return !memcmp(r->x->bytes, x->bytes, (uint64_t)x->arrays * sizeof *x->bytes) &&
         !memcmp(r->group, group, (uint64_t)x->members * sizeof *group);
}

// The first such round, in order, that the member at `at` has not come to yet.
static struct round* find(struct kiln_world* w, const kiln_exchange* x, const int64_t* group, int64_t at) {
  struct round** end = &w->rounds;
  for (struct round* r = w->rounds; r; r = r->next) {
    end = &r->next;
    if (!r->party[at].here && same(r, x, group)) return r;
  }
  const uint64_t members = (uint64_t)x->members;
  struct round* r = calloc(1, sizeof *r + members * (sizeof *r->party + sizeof *group));
  if (!r) return 0;
  int64_t* copy = (int64_t*)(r->party + members);
  memcpy(copy, group, members * sizeof *group);
  r->x = x;
  r->group = copy;
  *end = r;
  return r;
}

static void pause_a_little(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

static int reached(const _Atomic int64_t* counter, int64_t count) {
  for (int k = 0; k < kSpins; ++k) {
    if (atomic_load_explicit(counter, memory_order_acquire) >= count) return 1;
    pause_a_little();
  }
  return 0;
}

// Waits for those that are at work: they only copy and combine, so there is no limit of time.
static void meet(struct kiln_world* w, _Atomic int64_t* counter, int64_t members) {
  if (atomic_fetch_add_explicit(counter, 1, memory_order_acq_rel) + 1 < members && reached(counter, members)) return;
  pthread_mutex_lock(&w->lock);
  if (atomic_load(counter) == members) pthread_cond_broadcast(&w->changed);
  while (atomic_load(counter) < members) pthread_cond_wait(&w->changed, &w->lock);
  pthread_mutex_unlock(&w->lock);
}

// All members are there, or the status with which the wait failed.
static int assemble(struct kiln_world* w, struct round* r, int64_t members) {
  if (reached(&r->arrived, members)) return 0;
  pthread_mutex_lock(&w->lock);
  const struct timespec deadline = kiln_model_world_deadline(w);
  while (r->arrived < members && !w->failure)
    if (!kiln_model_world_wait(w, &deadline) && r->arrived < members) kiln_model_world_fail(w, KILN_TIMEOUT);
  const int failed = r->arrived < members ? w->failure : 0;
  pthread_mutex_unlock(&w->lock);
  return failed;
}

static void leave(struct kiln_world* w, struct round* r, int64_t members) {
  pthread_mutex_lock(&w->lock);
  if (++r->gone == members) {
    struct round** p = &w->rounds;
    while (*p != r) p = &(*p)->next;
    *p = r->next;
    free(r);
  }
  pthread_mutex_unlock(&w->lock);
}

// Bytes [from, to) of array `a` of all members, combined in the group's order, to `result`. The result may be this
// member's own array, which nobody else reads there.
static void combine(const kiln_exchange* x, const struct party* party, int64_t a, int64_t from, int64_t to,
                    char* result) {
  _Alignas(kLine) char sum[kBlock];
  const int64_t block = kBlock / x->element_bytes * x->element_bytes;
  for (int64_t at = from; at < to; at += block) {
    const int64_t bytes = to - at < block ? to - at : block;
    memcpy(sum, (const char*)party[0].arrays[a] + at, (uint64_t)bytes);
    for (int64_t k = 1; k < x->members; ++k)
      x->combine(x->how, sum, (const char*)party[k].arrays[a] + at, bytes / x->element_bytes);
    memcpy(result + (at - from), sum, (uint64_t)bytes);
  }
}

// Where the part of an array begins that member `k` combines.
static int64_t part(const kiln_exchange* x, int64_t a, int64_t k) {
  const int64_t bytes = x->bytes[a], lines = (bytes + kLine - 1) / kLine;
  const int64_t each = (lines + x->members - 1) / x->members * kLine;
  return k * each < bytes ? k * each : bytes;
}

// Each combines a part of every array; the others fetch it.
static void all_reduce(struct kiln_world* w, struct round* r, const kiln_exchange* x, int64_t at) {
  const struct party* party = r->party;
  for (int64_t a = 0; a < x->arrays; ++a) {
    const int64_t from = part(x, a, at);
    combine(x, party, a, from, part(x, a, at + 1), (char*)party[at].results[a] + from);
  }
  meet(w, &r->combined, x->members);
  for (int64_t a = 0; a < x->arrays; ++a)
    for (int64_t k = 0; k < x->members; ++k) {
      const int64_t from = part(x, a, k), to = part(x, a, k + 1);
      if (k != at && from < to)
        memcpy((char*)party[at].results[a] + from, (const char*)party[k].results[a] + from, (uint64_t)(to - from));
    }
}

static void fetch(const kiln_exchange* x, const struct party* party, int64_t a, int64_t at) {
  const int64_t members = x->members, bytes = x->bytes[a], block = bytes / members;
  char* result = party[at].results[a];
  switch (x->kind) {
    case KILN_REDUCE_SCATTER:
      combine(x, party, a, at * block, (at + 1) * block, result);
      return;
    case KILN_ALL_GATHER:
      for (int64_t k = 0; k < members; ++k) memcpy(result + k * bytes, party[k].arrays[a], (uint64_t)bytes);
      return;
    case KILN_ALL_TO_ALL:
      for (int64_t k = 0; k < members; ++k)
        memcpy(result + k * block, (const char*)party[k].arrays[a] + at * block, (uint64_t)block);
      return;
    default:
      if (x->source[at] < 0)
        memset(result, 0, (uint64_t)bytes);
      else
        memcpy(result, party[x->source[at]].arrays[a], (uint64_t)bytes);
  }
}

int kiln_model_world_exchange(void* self, int64_t device, const kiln_exchange* x, const int64_t* group,
                              const void* const* arrays, void* const* results) {
  struct kiln_world* w = self;
  int64_t at = 0;
  while (at < x->members && group[at] != device) ++at;
  if (at == x->members) return KILN_COMMUNICATION;
  pthread_mutex_lock(&w->lock);
  // Once a run has failed nobody meets: the devices that still come fail as those that waited did.
  int failed = w->failure;
  struct round* r = failed ? 0 : find(w, x, group, at);
  if (r) {
    r->party[at] = (struct party){arrays, results, 1};
    if (++r->arrived == x->members) pthread_cond_broadcast(&w->changed);
  }
  pthread_mutex_unlock(&w->lock);
  if (!r) return failed ? failed : KILN_COMMUNICATION;
  failed = assemble(w, r, x->members);
  if (failed) return failed;
  if (x->kind == KILN_ALL_REDUCE)
    all_reduce(w, r, x, at);
  else
    for (int64_t a = 0; a < x->arrays; ++a) fetch(x, r->party, a, at);
  meet(w, &r->done, x->members);
  leave(w, r, x->members);
  return 0;
}

void kiln_model_world_forget_rounds(struct kiln_world* w) {
  while (w->rounds) {
    struct round* next = w->rounds->next;
    free(w->rounds);
    w->rounds = next;
  }
}
