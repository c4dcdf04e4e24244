// Exchanges beside the runs: of large arrays, which are read where they are and written where they belong while the
// devices compute.
//
// Each device has a thread for them, which sleeps until all members of an exchange have come. A run that wants its
// results does what is not done yet, its own part and the others', so nobody waits for a thread that has no processor.
// Cost: a thread of each device that has begun such an exchange; a KB of memory for one that is under way.
// Guarantees: results have the bits of an exchange without it. A device whose run fails waits until nobody is at its
//   arrays; the others' exchanges with it end with the failure.
#define _GNU_SOURCE  // SCHED_BATCH
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#include "runtime_min/coll/round.h"

// A device's thread. It waits at a semaphore: to broadcast to a condition may block (glibc before 2.41) until those
// that were woken before have had a processor, and they come last.
struct helper {
  struct kiln_world* world;
  int64_t device;
  pthread_t thread;
  sem_t begun;
  int runs, asleep;
};

static int first_phase(const struct round* r) { return r->kind == KILN_ALL_REDUCE ? kCombine : kDeliver; }

// What member `at` does of array `a` in a phase: bytes from `*from` on.
static int64_t span(const kiln_exchange* x, int64_t at, int phase, int64_t a, int64_t* from) {
  *from = phase == kCombine ? kiln_model_world_part(x, a, at) : 0;
  return phase == kCombine ? kiln_model_world_part(x, a, at + 1) - *from : kiln_model_world_result_bytes(x, a);
}

static int64_t pieces_of(int64_t bytes) { return (bytes + kPiece - 1) / kPiece; }

static void do_piece(const struct round* r, int64_t at, int phase, int64_t piece) {
  const kiln_exchange* x = r->what;
  for (int64_t a = 0; a < x->arrays; ++a) {
    int64_t from = 0;
    const int64_t bytes = span(x, at, phase, a, &from), here = pieces_of(bytes);
    if (piece >= here) {
      piece -= here;
      continue;
    }
    const int64_t end = from + bytes, begin = from + piece * kPiece, to = begin + kPiece < end ? begin + kPiece : end;
    if (phase == kCombine)
      kiln_model_world_combine(x, r->party, a, begin, to, (char*)r->party[at].results[a] + begin);
    else if (r->kind == KILN_ALL_REDUCE)
      kiln_model_world_collect(x, r->party, a, at, begin, to);
    else
      kiln_model_world_fetch(x, r->party, a, at, begin, to);
    return;
  }
}

// With the lock held.
static void wake(struct helper* h) {
  if (!h->asleep) return;
  h->asleep = 0;
  sem_post(&h->begun);
}

void kiln_model_world_wake_helpers(struct kiln_world* w, const struct round* r) {
  for (int64_t k = 0; w->helpers && k < r->members; ++k) wake(&w->helpers[r->group[k]]);
}

static _Atomic int64_t* finished(struct round* r, int phase) { return phase == kCombine ? &r->combined : &r->done; }

// One more member has all of a phase.
static void finish(struct kiln_world* w, struct round* r, int phase) {
  if (atomic_fetch_add(finished(r, phase), 1) + 1 < r->members) return;
  pthread_mutex_lock(&w->lock);
  if (w->sleepers) pthread_cond_broadcast(&w->changed);
  if (phase == kCombine) kiln_model_world_wake_helpers(w, r);
  pthread_mutex_unlock(&w->lock);
}

static int may_begin(struct round* r, int phase) {
  return phase == first_phase(r) || atomic_load(&r->combined) == r->members;
}

// Whether member `at` has a piece that nobody has taken upon himself.
static int is_open(struct round* r, int64_t at) {
  if (atomic_load(&r->cancelled)) return 0;
  for (int phase = first_phase(r); phase < kPhases && may_begin(r, phase); ++phase)
    if (atomic_load(&r->party[at].claimed[phase]) < r->party[at].pieces[phase]) return 1;
  return 0;
}

// Does pieces of member `at` until none is open.
static void work(struct kiln_world* w, struct round* r, int64_t at) {
  struct party* p = &r->party[at];
  for (int phase = first_phase(r); phase < kPhases && may_begin(r, phase); ++phase) {
    while (atomic_load(&p->claimed[phase]) < p->pieces[phase]) {
      const int64_t piece = atomic_fetch_add(&p->claimed[phase], 1);
      if (piece >= p->pieces[phase]) break;
      atomic_fetch_add(&r->active, 1);
      const int cancelled = atomic_load(&r->cancelled);
      if (!cancelled) do_piece(r, at, phase, piece);
      atomic_fetch_sub(&r->active, 1);
      if (cancelled) return;
      if (atomic_fetch_add(&p->ready[phase], 1) + 1 == p->pieces[phase]) finish(w, r, phase);
    }
  }
}

// With the lock held: a round in which the device has something to do, and its place there.
static struct round* open_to(struct kiln_world* w, int64_t device, int64_t* at) {
  for (struct round* r = w->rounds; r; r = r->next) {
    if (!r->beside || atomic_load(&r->arrived) < r->members) continue;
    *at = kiln_model_world_place(r->group, r->members, device);
    if (*at < r->members && is_open(r, *at)) return r;
  }
  return 0;
}

static void end_if_last(struct kiln_world* w, struct round* r) {
  if (atomic_load(&r->left) == r->members && !r->helpers) kiln_model_world_end_round(w, r);
}

// To wake the thread shall not take the processor from the run that wakes it, which is about to compute: it goes to an
// idle one, or waits for its turn.
static void let_others_go_on(void) {
  const struct sched_param none = {0};
  if (sched_getscheduler(0) == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &none);
}

static void* helper_main(void* arg) {
  struct helper* h = arg;
  struct kiln_world* w = h->world;
  let_others_go_on();
  pthread_mutex_lock(&w->lock);
  while (!w->stop) {
    int64_t at = 0;
    struct round* r = open_to(w, h->device, &at);
    if (!r) {
      h->asleep = 1;
      pthread_mutex_unlock(&w->lock);
      while (sem_wait(&h->begun)) {  // a signal came
      }
      pthread_mutex_lock(&w->lock);
      continue;
    }
    ++r->helpers;
    pthread_mutex_unlock(&w->lock);
    set_float_environment(r->party[at].mxcsr);
    work(w, r, at);
    pthread_mutex_lock(&w->lock);
    --r->helpers;
    end_if_last(w, r);
  }
  pthread_mutex_unlock(&w->lock);
  return 0;
}

// Without memory or threads the runs do all of it themselves.
void kiln_model_world_start_helper(struct kiln_world* w, int64_t device) {
  pthread_mutex_lock(&w->lock);
  if (!w->helpers) w->helpers = calloc((uint64_t)w->devices, sizeof *w->helpers);
  struct helper* h = w->helpers ? &w->helpers[device] : 0;
  if (h && !h->runs) {
    h->world = w;
    h->device = device;
    sem_init(&h->begun, 0, 0);
    h->runs = !pthread_create(&h->thread, 0, helper_main, h);
    if (!h->runs) sem_destroy(&h->begun);
  }
  pthread_mutex_unlock(&w->lock);
}

void kiln_model_world_cut_in_pieces(struct round* r) {
  const kiln_exchange* x = r->what;
  for (int64_t at = 0; at < r->members; ++at) {
    struct party* p = &r->party[at];
    for (int phase = first_phase(r); phase < kPhases; ++phase) {
      for (int64_t a = 0, from; a < x->arrays; ++a) p->pieces[phase] += pieces_of(span(x, at, phase, a, &from));
      if (!p->pieces[phase]) atomic_fetch_add(finished(r, phase), 1);
    }
  }
}

// Until the counter is there; or the status of the failure for which the round was cancelled.
static int wait_for(struct kiln_world* w, struct round* r, const _Atomic int64_t* counter) {
  if (kiln_model_world_reached(w, counter, r->members)) return 0;
  pthread_mutex_lock(&w->lock);
  ++w->sleepers;
  while (atomic_load(counter) < r->members && !atomic_load(&r->cancelled)) pthread_cond_wait(&w->changed, &w->lock);
  --w->sleepers;
  const int failed = atomic_load(counter) < r->members ? w->failure : 0;
  pthread_mutex_unlock(&w->lock);
  return failed;
}

int kiln_model_world_take_beside(struct kiln_world* w, struct round* r, int64_t at) {
  for (int phase = first_phase(r); phase < kPhases; ++phase) {
    for (int64_t k = 0; k < r->members; ++k) work(w, r, (at + k) % r->members);
    const int failed = wait_for(w, r, finished(r, phase));
    if (failed) return failed;
  }
  pthread_mutex_lock(&w->lock);
  r->party[at].left = 1;
  atomic_fetch_add(&r->left, 1);
  end_if_last(w, r);
  pthread_mutex_unlock(&w->lock);
  return 0;
}

void kiln_model_world_withdraw(struct kiln_world* w, int64_t device) {
  pthread_mutex_lock(&w->lock);
  for (struct round* r = w->rounds; r; r = r->next) {
    const int64_t at = kiln_model_world_place(r->group, r->members, device);
    if (!r->beside || at == r->members || !r->party[at].here || r->party[at].left) continue;
    atomic_store(&r->cancelled, 1);
    while (atomic_load(&r->active)) sched_yield();
  }
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

void kiln_model_world_quiet(struct kiln_world* w) {
  pthread_mutex_lock(&w->lock);
  for (struct round* r = w->rounds; r;) {
    atomic_store(&r->cancelled, 1);
    if (!r->helpers) {
      r = r->next;
      continue;
    }
    pthread_mutex_unlock(&w->lock);
    sched_yield();
    pthread_mutex_lock(&w->lock);
    r = w->rounds;
  }
  pthread_mutex_unlock(&w->lock);
}

void kiln_model_world_stop_helpers(struct kiln_world* w) {
  pthread_mutex_lock(&w->lock);
  w->stop = 1;
  for (int64_t d = 0; w->helpers && d < w->devices; ++d) wake(&w->helpers[d]);
  pthread_mutex_unlock(&w->lock);
  for (int64_t d = 0; w->helpers && d < w->devices; ++d) {
    if (!w->helpers[d].runs) continue;
    pthread_join(w->helpers[d].thread, 0);
    sem_destroy(&w->helpers[d].begun);
  }
  free(w->helpers);
}
