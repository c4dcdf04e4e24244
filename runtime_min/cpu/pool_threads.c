// A pool of threads, as a host without its own would write it. Linked into a program only if it calls
// <model>_pool_create. Any number of runs may share one.
//
// Who waits looks again and again for some tens of microseconds before it sleeps: kernels follow one another within
// less, and waking a thread takes longer than many of them. Where there are more threads than processors, it sleeps at
// once.
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

struct pool {
  struct kiln_pool face;
  pthread_mutex_t lock;
  pthread_cond_t wake, finished;
  struct task waiting[kWaiting];
  unsigned first;
  // Written with the lock held, and looked at without it.
  unsigned count;
  unsigned finishes;  // of tasks, so far
  int running;        // tasks that somebody runs just now
  int stop, threads, looks;
  pthread_t thread[];
};

static void set(unsigned* field, unsigned value) { __atomic_store_n(field, value, __ATOMIC_RELAXED); }

// Looks at a field until it is not `value`, but not for long.
static void look(const struct pool* p, const unsigned* field, unsigned value) {
  for (int k = 0; k < p->looks && __atomic_load_n(field, __ATOMIC_RELAXED) == value; ++k) __builtin_ia32_pause();
}

// With the lock held and a task waiting: runs it without the lock.
static void run_one(struct pool* p) {
  struct task t = p->waiting[p->first];
  p->first = (p->first + 1) % kWaiting;
  set(&p->count, p->count - 1);
  ++p->running;
  pthread_mutex_unlock(&p->lock);
  t.fn(t.arg);
  pthread_mutex_lock(&p->lock);
  --p->running;
  set(&p->finishes, p->finishes + 1);
  pthread_cond_broadcast(&p->finished);
}

static void* thread_main(void* arg) {
  struct pool* p = arg;
  pthread_mutex_lock(&p->lock);
  while (!p->stop) {
    if (p->count) {
      run_one(p);
      continue;
    }
    pthread_mutex_unlock(&p->lock);
    look(p, &p->count, 0);
    pthread_mutex_lock(&p->lock);
    if (!p->count && !p->stop) pthread_cond_wait(&p->wake, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
  return 0;
}

static int pool_size(void* self) { return ((struct pool*)self)->threads + 1; }

static void pool_submit(void* self, void (*fn)(void*), void* arg) {
  struct pool* p = self;
  pthread_mutex_lock(&p->lock);
  if (p->count == kWaiting) {
    pthread_mutex_unlock(&p->lock);
    fn(arg);
    return;
  }
  p->waiting[(p->first + p->count) % kWaiting] = (struct task){fn, arg};
  set(&p->count, p->count + 1);
  pthread_cond_signal(&p->wake);
  pthread_mutex_unlock(&p->lock);
}

// What the caller waits for is either waiting, or running, or finished: in the last case this returns.
static void pool_help(void* self) {
  struct pool* p = self;
  pthread_mutex_lock(&p->lock);
  if (p->count) {
    run_one(p);
  } else if (p->running) {
    const unsigned finishes = p->finishes;
    pthread_mutex_unlock(&p->lock);
    look(p, &p->finishes, finishes);
    pthread_mutex_lock(&p->lock);
    if (p->running && p->finishes == finishes) pthread_cond_wait(&p->finished, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
}

void kiln_model_pool_destroy(struct kiln_pool* face) {
  struct pool* p = (struct pool*)face;
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  p->stop = 1;
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  for (int k = 0; k < p->threads; ++k) pthread_join(p->thread[k], 0);
  pthread_mutex_destroy(&p->lock);
  pthread_cond_destroy(&p->wake);
  pthread_cond_destroy(&p->finished);
  free(p);
}

// `threads` counts the calling one. NULL if memory or threads run out.
struct kiln_pool* kiln_model_pool_create(int threads) {
  int extra = threads > 1 ? threads - 1 : 0;
  struct pool* p = calloc(1, sizeof *p + (uint64_t)extra * sizeof(pthread_t));
  if (!p) return 0;
  p->face.self = p;
  p->face.size = pool_size;
  p->face.submit = pool_submit;
  p->face.help = pool_help;
  p->looks = sysconf(_SC_NPROCESSORS_ONLN) >= threads ? kLooks : 0;
  pthread_mutex_init(&p->lock, 0);
  pthread_cond_init(&p->wake, 0);
  pthread_cond_init(&p->finished, 0);
  for (int k = 0; k < extra; ++k) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 4u << 20);  // kernels keep their panels on the stack
    int failed = pthread_create(&p->thread[k], &attr, thread_main, p);
    pthread_attr_destroy(&attr);
    if (failed) {
      kiln_model_pool_destroy(&p->face);
      return 0;
    }
    ++p->threads;
  }
  return &p->face;
}
