// A pool of threads for one model: parallel_for hands out pieces of a kernel's units until none is left.
// Linked into a program only if it calls <model>_pool_create.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime_min/abi.h"

struct job {
  void (*fn)(void*, int64_t, int64_t);
  void* args;
  int64_t units, piece;
  int64_t next;   // first unit that nobody has taken
  unsigned mode;  // the caller's floating-point mode, which every piece runs under
  int working;    // threads that still run a piece
};

struct pool {
  struct kiln_pool face;
  pthread_mutex_t call;  // one parallel_for at a time
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  struct job job;
  uint64_t generation;
  int stop, threads;
  pthread_t thread[];
};

static void work(struct job* j) {
  for (;;) {
    int64_t from = __atomic_fetch_add(&j->next, j->piece, __ATOMIC_RELAXED);
    if (from >= j->units) return;
    int64_t to = from + j->piece < j->units ? from + j->piece : j->units;
    j->fn(j->args, from, to);
  }
}

static void* thread_main(void* arg) {
  struct pool* p = arg;
  uint64_t seen = 0;
  pthread_mutex_lock(&p->lock);
  for (;;) {
    while (!p->stop && p->generation == seen) pthread_cond_wait(&p->wake, &p->lock);
    if (p->stop) break;
    seen = p->generation;
    pthread_mutex_unlock(&p->lock);
    __builtin_ia32_ldmxcsr(p->job.mode);
    work(&p->job);
    pthread_mutex_lock(&p->lock);
    if (--p->job.working == 0) pthread_cond_signal(&p->done);
  }
  pthread_mutex_unlock(&p->lock);
  return 0;
}

static void parallel_for(void* self, void (*fn)(void*, int64_t, int64_t), void* args, int64_t units) {
  struct pool* p = self;
  pthread_mutex_lock(&p->call);
  int64_t piece = units / ((int64_t)(p->threads + 1) * 4);
  pthread_mutex_lock(&p->lock);
  p->job.fn = fn;
  p->job.args = args;
  p->job.units = units;
  p->job.piece = piece > 0 ? piece : 1;
  p->job.next = 0;
  p->job.mode = __builtin_ia32_stmxcsr();
  p->job.working = p->threads;
  ++p->generation;
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  work(&p->job);
  pthread_mutex_lock(&p->lock);
  while (p->job.working > 0) pthread_cond_wait(&p->done, &p->lock);
  pthread_mutex_unlock(&p->lock);
  pthread_mutex_unlock(&p->call);
}

static int pool_size(void* self) { return ((struct pool*)self)->threads + 1; }

void kiln_model_pool_destroy(struct kiln_pool* face) {
  struct pool* p = (struct pool*)face;
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  p->stop = 1;
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  for (int k = 0; k < p->threads; ++k) pthread_join(p->thread[k], 0);
  pthread_mutex_destroy(&p->call);
  pthread_mutex_destroy(&p->lock);
  pthread_cond_destroy(&p->wake);
  pthread_cond_destroy(&p->done);
  free(p);
}

// `threads` counts the calling one. NULL if memory or threads run out.
struct kiln_pool* kiln_model_pool_create(int threads) {
  int extra = threads > 1 ? threads - 1 : 0;
  struct pool* p = calloc(1, sizeof *p + (uint64_t)extra * sizeof(pthread_t));
  if (!p) return 0;
  p->face.self = p;
  p->face.parallel_for = parallel_for;
  p->face.size = pool_size;
  pthread_mutex_init(&p->call, 0);
  pthread_mutex_init(&p->lock, 0);
  pthread_cond_init(&p->wake, 0);
  pthread_cond_init(&p->done, 0);
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
