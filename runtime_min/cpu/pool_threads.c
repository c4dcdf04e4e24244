// A pool of threads, as a host without its own would write it. Linked into a program only if it calls
// <model>_pool_create. Any number of runs may share one.
//
// Kernels follow one another within microseconds, and waking a thread takes longer than many of them. A thread without
// work therefore looks at a cache line of its own for some tens of microseconds before it sleeps, and is given a task
// there: that line and the task's are all that travels between the two processors. Tasks wait in a queue only while all
// threads are busy. Where there are more threads than processors, they sleep at once.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime_min/abi.h"

struct task {
  void (*fn)(void*);
  void* arg;
};

enum { kWaiting = 256 };  // tasks that can wait; beyond that submit runs them itself
enum { kLooks = 2000 };   // before a thread sleeps, a pause of the processor between them
enum { kLine = 64 };

// A thread that looks is taken by who makes kLooking kTaken; kGiven says that the task is there. A sleeping thread is
// taken with the lock held.
enum { kLooking, kTaken, kGiven, kBusy, kSleeping };

struct pool;
struct worker {
  _Alignas(kLine) int state;
  struct task task;
  struct pool* pool;
  pthread_t thread;
  pthread_cond_t wake;
};

struct pool {
  struct kiln_pool face;
  void* memory;  // that it lies in
  int threads, looks;
  pthread_mutex_t lock;
  pthread_cond_t finished;
  int waiters;  // for `finished`
  // Written with the lock held, and looked at without it.
  _Alignas(kLine) unsigned count;  // of tasks that wait
  int stop;
  unsigned first;
  struct task waiting[kWaiting];
  _Alignas(kLine) unsigned finishes;  // of tasks, so far
  struct worker worker[];
};

static int load(const int* field) { return __atomic_load_n(field, __ATOMIC_ACQUIRE); }
static void store(int* field, int value) { __atomic_store_n(field, value, __ATOMIC_RELEASE); }
static unsigned glance(const unsigned* field) { return __atomic_load_n(field, __ATOMIC_RELAXED); }

static int change(int* state, int from, int to) {
  return __atomic_compare_exchange_n(state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

// Runs a task, and wakes who waits for one to end. The order of the two accesses and of those in pool_help matters.
static void run(struct pool* p, struct task t) {
  t.fn(t.arg);
  __atomic_fetch_add(&p->finishes, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&p->waiters, __ATOMIC_SEQ_CST)) return;
  pthread_mutex_lock(&p->lock);
  pthread_cond_broadcast(&p->finished);
  pthread_mutex_unlock(&p->lock);
}

// With the lock held and a task waiting.
static struct task take_waiting(struct pool* p) {
  const struct task t = p->waiting[p->first];
  p->first = (p->first + 1) % kWaiting;
  __atomic_store_n(&p->count, p->count - 1, __ATOMIC_RELAXED);
  return t;
}

// Runs the task that has waited longest, if there is one.
static void run_waiting(struct pool* p) {
  pthread_mutex_lock(&p->lock);
  const int found = p->count != 0;
  struct task t = {0, 0};
  if (found) t = take_waiting(p);
  pthread_mutex_unlock(&p->lock);
  if (found) run(p, t);
}

// Until it is given a task, or tasks wait, or the pool ends.
static void sleep_until_work(struct pool* p, struct worker* w) {
  pthread_mutex_lock(&p->lock);
  if (!p->count && !p->stop && change(&w->state, kLooking, kSleeping)) {
    while (load(&w->state) == kSleeping && !p->count && !p->stop) pthread_cond_wait(&w->wake, &p->lock);
    change(&w->state, kSleeping, kLooking);
  }
  pthread_mutex_unlock(&p->lock);
}

static void* thread_main(void* arg) {
  struct worker* w = arg;
  struct pool* p = w->pool;
  while (!load(&p->stop)) {
    int state = load(&w->state);
    for (int k = 0; k < p->looks && state == kLooking && !glance(&p->count); ++k) {
      __builtin_ia32_pause();
      state = load(&w->state);
    }
    if (state == kGiven) {
      if (!change(&w->state, kGiven, kBusy)) continue;
      run(p, w->task);
      store(&w->state, kLooking);
    } else if (state == kTaken) {
      __builtin_ia32_pause();
    } else if (glance(&p->count) && change(&w->state, kLooking, kBusy)) {
      run_waiting(p);
      store(&w->state, kLooking);
    } else if (state == kLooking) {
      sleep_until_work(p, w);
    }
  }
  return 0;
}

static int pool_size(void* self) { return ((struct pool*)self)->threads + 1; }

static int give_to_one_that_looks(struct pool* p, struct task t) {
  for (int k = 0; k < p->threads; ++k) {
    struct worker* w = &p->worker[k];
    if (__atomic_load_n(&w->state, __ATOMIC_RELAXED) != kLooking || !change(&w->state, kLooking, kTaken)) continue;
    w->task = t;
    store(&w->state, kGiven);
    return 1;
  }
  return 0;
}

// With the lock held.
static int wake_one(struct pool* p, struct task t) {
  for (int k = 0; k < p->threads; ++k) {
    struct worker* w = &p->worker[k];
    if (load(&w->state) != kSleeping) continue;
    w->task = t;
    store(&w->state, kGiven);
    pthread_cond_signal(&w->wake);
    return 1;
  }
  return 0;
}

static void pool_submit(void* self, void (*fn)(void*), void* arg) {
  struct pool* p = self;
  const struct task t = {fn, arg};
  if (give_to_one_that_looks(p, t)) return;
  pthread_mutex_lock(&p->lock);
  int given = wake_one(p, t);
  if (!given && p->count < kWaiting) {
    p->waiting[(p->first + p->count) % kWaiting] = t;
    __atomic_store_n(&p->count, p->count + 1, __ATOMIC_RELAXED);
    given = 1;
  }
  pthread_mutex_unlock(&p->lock);
  if (!given) fn(arg);
}

static int anyone_works(const struct pool* p) {
  for (int k = 0; k < p->threads; ++k) {
    const int state = load(&p->worker[k].state);
    if (state != kLooking && state != kSleeping) return 1;
  }
  return 0;
}

// Runs what a thread was given and has not begun: it does not get its processor.
static int run_given(struct pool* p) {
  for (int k = 0; k < p->threads; ++k) {
    struct worker* w = &p->worker[k];
    if (load(&w->state) != kGiven || !change(&w->state, kGiven, kTaken)) continue;
    const struct task t = w->task;
    store(&w->state, kLooking);
    run(p, t);
    return 1;
  }
  return 0;
}

// What the caller waits for is either waiting, or a thread has it, or finished: in the last case this returns soon.
static void pool_help(void* self) {
  enum { kGlances = 16 };  // between looks at what the threads do
  struct pool* p = self;
  if (glance(&p->count)) {
    run_waiting(p);
    return;
  }
  if (run_given(p)) return;
  const unsigned finishes = glance(&p->finishes);
  for (int k = 0; k < p->looks; ++k) {
    if (glance(&p->finishes) != finishes || glance(&p->count)) return;
    if (k % kGlances == kGlances - 1 && !anyone_works(p)) return;
    __builtin_ia32_pause();
  }
  pthread_mutex_lock(&p->lock);
  __atomic_fetch_add(&p->waiters, 1, __ATOMIC_SEQ_CST);
  while (!p->count && __atomic_load_n(&p->finishes, __ATOMIC_SEQ_CST) == finishes && anyone_works(p))
    pthread_cond_wait(&p->finished, &p->lock);
  __atomic_fetch_sub(&p->waiters, 1, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&p->lock);
}

void kiln_model_pool_destroy(struct kiln_pool* face) {
  struct pool* p = (struct pool*)face;
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  store(&p->stop, 1);
  for (int k = 0; k < p->threads; ++k) pthread_cond_signal(&p->worker[k].wake);
  pthread_mutex_unlock(&p->lock);
  for (int k = 0; k < p->threads; ++k) {
    pthread_join(p->worker[k].thread, 0);
    pthread_cond_destroy(&p->worker[k].wake);
  }
  pthread_mutex_destroy(&p->lock);
  pthread_cond_destroy(&p->finished);
  free(p->memory);
}

// `threads` counts the calling one. NULL if memory or threads run out.
struct kiln_pool* kiln_model_pool_create(int threads) {
  const int extra = threads > 1 ? threads - 1 : 0;
  void* const memory = calloc(1, sizeof(struct pool) + (uint64_t)extra * sizeof(struct worker) + kLine);
  if (!memory) return 0;
  struct pool* p = (struct pool*)(((uintptr_t)memory + kLine - 1) & ~(uintptr_t)(kLine - 1));
  p->memory = memory;
  p->face.self = p;
  p->face.size = pool_size;
  p->face.submit = pool_submit;
  p->face.help = pool_help;
  p->looks = sysconf(_SC_NPROCESSORS_ONLN) >= threads ? kLooks : 0;
  pthread_mutex_init(&p->lock, 0);
  pthread_cond_init(&p->finished, 0);
  for (int k = 0; k < extra; ++k) {
    struct worker* w = &p->worker[k];
    w->pool = p;
    pthread_cond_init(&w->wake, 0);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 4u << 20);  // kernels keep their panels on the stack
    const int failed = pthread_create(&w->thread, &attr, thread_main, w);
    pthread_attr_destroy(&attr);
    if (failed) {
      pthread_cond_destroy(&w->wake);
      kiln_model_pool_destroy(&p->face);
      return 0;
    }
    ++p->threads;
  }
  return &p->face;
}
