// A pool of threads, as a host without its own would write it. Linked into a program only if it calls
// <model>_pool_create. Any number of runs may share one.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime_min/abi.h"

struct task {
  void (*fn)(void*);
  void* arg;
};

enum { kWaiting = 256 };  // tasks that can wait; beyond that submit runs them itself

struct pool {
  struct kiln_pool face;
  pthread_mutex_t lock;
  pthread_cond_t wake, finished;
  struct task waiting[kWaiting];
  unsigned first, count;
  int running;  // tasks that somebody runs just now
  int stop, threads;
  pthread_t thread[];
};

// With the lock held and a task waiting: runs it without the lock.
static void run_one(struct pool* p) {
  struct task t = p->waiting[p->first];
  p->first = (p->first + 1) % kWaiting;
  --p->count;
  ++p->running;
  pthread_mutex_unlock(&p->lock);
  t.fn(t.arg);
  pthread_mutex_lock(&p->lock);
  --p->running;
  pthread_cond_broadcast(&p->finished);
}

static void* thread_main(void* arg) {
  struct pool* p = arg;
  pthread_mutex_lock(&p->lock);
  while (!p->stop) {
    if (p->count)
      run_one(p);
    else
      pthread_cond_wait(&p->wake, &p->lock);
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
  p->waiting[(p->first + p->count++) % kWaiting] = (struct task){fn, arg};
  pthread_cond_signal(&p->wake);
  pthread_mutex_unlock(&p->lock);
}

// What the caller waits for is either waiting, or running, or finished: in the last case this returns.
static void pool_help(void* self) {
  struct pool* p = self;
  pthread_mutex_lock(&p->lock);
  if (p->count)
    run_one(p);
  else if (p->running)
    pthread_cond_wait(&p->finished, &p->lock);
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
