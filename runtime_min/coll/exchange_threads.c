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

#include "runtime_min/coll/world.h"

enum {
  kAwake = 200000,  // nanoseconds for which a thread that waits offers its processor to others, before it sleeps
  kBlock = 4096,    // bytes that are combined at a time, in the first cache
  kLine = 64        // of a cache: members write no line together
};

struct party {
  const void* const* arrays;
  void* const* results;
  int here;
};

// One exchange of one group. Behind it, in one allocation: the group, the bytes of each array, and of small exchanges
// each member's table of arrays and the arrays.
struct round {
  struct round* next;
  int64_t kind, members, arrays;
  int64_t* group;
  int64_t* bytes;
  char* copies;          // of the first member; null: arrays are read where they are
  int64_t member_bytes;  // from one member's copies to the next one's
  _Atomic int64_t arrived, combined, done, left;
  struct party party[];
};

static int same(const struct round* r, const kiln_exchange* x, const int64_t* group) {
  if (r->kind != x->kind || r->members != x->members || r->arrays != x->arrays) return 0;
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

static struct round* new_round(const kiln_exchange* x, const int64_t* group) {
  const int64_t tables = x->members * (int64_t)sizeof *group + x->arrays * (int64_t)sizeof *x->bytes;
  const int64_t head = (int64_t)sizeof(struct round) + x->members * (int64_t)sizeof(struct party);
  const int64_t each = copy_bytes(x);
  struct round* r = malloc((uint64_t)(head + tables + kLine + each * x->members));
  if (!r) return 0;
  memset(r, 0, (uint64_t)head);
  r->kind = x->kind;
  r->members = x->members;
  r->arrays = x->arrays;
  r->group = (int64_t*)(r->party + x->members);
  r->bytes = r->group + x->members;
  memcpy(r->group, group, (uint64_t)x->members * sizeof *group);
  memcpy(r->bytes, x->bytes, (uint64_t)x->arrays * sizeof *x->bytes);
  if (each) r->copies = (char*)(((uintptr_t)(r->bytes + x->arrays) + kLine - 1) / kLine * kLine);
  r->member_bytes = each;
  return r;
}

// The first such round, in order, that the member at `at` has not come to yet; null if memory runs out.
static struct round* find(struct kiln_world* w, const kiln_exchange* x, const int64_t* group, int64_t at) {
  struct round** end = &w->rounds;
  for (; *end; end = &(*end)->next)
    if (same(*end, x, group) && !(*end)->party[at].here) return *end;
  return *end = new_round(x, group);
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
static int reached(const struct kiln_world* w, const _Atomic int64_t* counter, int64_t count) {
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
  if (last ? !atomic_load(&w->sleepers) : reached(w, counter, members)) return;
  pthread_mutex_lock(&w->lock);
  ++w->sleepers;
  if (last) pthread_cond_broadcast(&w->changed);
  while (atomic_load(counter) < members) pthread_cond_wait(&w->changed, &w->lock);
  --w->sleepers;
  pthread_mutex_unlock(&w->lock);
}

// All members are there, or the status with which the wait failed.
static int assemble(struct kiln_world* w, struct round* r, int64_t members) {
  if (reached(w, &r->arrived, members)) return 0;
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

// Bytes [from, to) of array `a` of all members, combined in the group's order, to `result`: there at once, or, where
// that is the array of a later member, by way of memory of this thread's. Nobody else reads that array there.
static void combine(const kiln_exchange* x, const struct party* party, int64_t a, int64_t from, int64_t to,
                    char* result) {
  _Alignas(kLine) char sum[kBlock];
  int in_place = 0;
  for (int64_t k = 1; k < x->members; ++k) in_place |= (const char*)party[k].arrays[a] + from == result;
  const int64_t block = kBlock / x->element_bytes * x->element_bytes;
  for (int64_t at = from; at < to; at += block) {
    const int64_t bytes = to - at < block ? to - at : block;
    char *end = result + (at - from), *into = in_place ? sum : end;
    if (into != (const char*)party[0].arrays[a] + at)
      memcpy(into, (const char*)party[0].arrays[a] + at, (uint64_t)bytes);
    for (int64_t k = 1; k < x->members; ++k)
      x->combine(x->how, into, (const char*)party[k].arrays[a] + at, bytes / x->element_bytes);
    if (in_place) memcpy(end, sum, (uint64_t)bytes);
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
    case KILN_ALL_REDUCE:
      combine(x, party, a, 0, bytes, result);
      return;
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

// Comes to the exchange: null, with the status, if it cannot take place. Without memory no run goes on: the others
// would take this device's next exchange for this one.
static struct round* arrive(struct kiln_world* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                            const void* const* arrays, void* const* results, int* failed) {
  pthread_mutex_lock(&w->lock);
  // Once a run has failed nobody meets: the devices that still come fail as those that waited did.
  *failed = w->failure;
  struct round* r = *failed ? 0 : find(w, x, group, at);
  if (r) {
    r->party[at] = (struct party){r->copies ? copied(r, at, arrays) : arrays, results, 1};
    if (++r->arrived == x->members && w->sleepers) pthread_cond_broadcast(&w->changed);
  } else if (!*failed) {
    kiln_model_world_fail(w, KILN_COMMUNICATION);
    *failed = KILN_COMMUNICATION;
  }
  pthread_mutex_unlock(&w->lock);
  return r;
}

static int64_t place_of(const int64_t* group, int64_t members, int64_t device) {
  int64_t at = 0;
  while (at < members && group[at] != device) ++at;
  return at;
}

static void leave(struct kiln_world* w, struct round* r) {
  const int64_t members = r->members;  // once counted, another member may free the round
  if (atomic_fetch_add(&r->left, 1) + 1 < members) return;
  pthread_mutex_lock(&w->lock);
  struct round** p = &w->rounds;
  while (*p != r) p = &(*p)->next;
  *p = r->next;
  pthread_mutex_unlock(&w->lock);
  free(r);
}

int kiln_model_world_exchange(void* self, int64_t device, const kiln_exchange* x, const int64_t* group,
                              const void* const* arrays, void* const* results) {
  struct kiln_world* w = self;
  const int64_t at = place_of(group, x->members, device);
  if (at == x->members) return KILN_COMMUNICATION;
  int failed = 0;
  struct round* r = arrive(w, x, group, at, arrays, results, &failed);
  if (!r) return failed;
  if (r->copies) return kiln_model_world_take(w, device, r, x, results);
  failed = assemble(w, r, x->members);
  if (failed) return failed;
  if (x->kind == KILN_ALL_REDUCE)
    all_reduce(w, r, x, at);
  else
    for (int64_t a = 0; a < x->arrays; ++a) fetch(x, r->party, a, at);
  meet(w, &r->done, x->members);
  leave(w, r);
  return 0;
}

void* kiln_model_world_offer(void* self, int64_t device, const kiln_exchange* x, const int64_t* group,
                             const void* const* arrays) {
  const int64_t at = place_of(group, x->members, device);
  int failed = 0;
  return at < x->members && copy_bytes(x) > 0 ? arrive(self, x, group, at, arrays, 0, &failed) : 0;
}

int kiln_model_world_take(void* self, int64_t device, void* offered, const kiln_exchange* x, void* const* results) {
  struct kiln_world* w = self;
  struct round* r = offered;
  const int64_t at = place_of(r->group, r->members, device);
  const int failed = assemble(w, r, r->members);
  if (failed) return failed;
  r->party[at].results = results;
  for (int64_t a = 0; a < x->arrays; ++a) fetch(x, r->party, a, at);
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
