// Devices as threads of one process: rendezvous for gathers, queues for sends. Linked into a program only if it calls
// <model>_world_create. One world serves any number of models.
//
// Every wait ends: with what it waits for, with the failure of any device, or after the time limit, which counts as a
// failure for all. A failed world stays failed until it is reset.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime_min/coll/world.h"

enum { kLooks = 64 };  // a fraction of a microsecond

// One gather of one group: blocks are copied through it, so that members may leave at different times.
struct meeting {
  struct meeting* next;
  int64_t members, bytes, arrived, left;
  const int64_t* group;  // the group's own table, the same for each member
  char data[];
};

// Written by the compiler (codegen/host/program_object.h).
__attribute__((visibility("hidden"))) extern const int64_t kiln_model_device_timeout_ms;

struct timespec kiln_model_world_deadline(const struct kiln_world* w) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += w->timeout_ms / 1000;
  t.tv_nsec += w->timeout_ms % 1000 * 1000000;
  if (t.tv_nsec >= 1000000000) {
    ++t.tv_sec;
    t.tv_nsec -= 1000000000;
  }
  return t;
}

void kiln_model_world_fail(struct kiln_world* w, int32_t failure) {
  if (!w->failure) w->failure = failure;
  pthread_cond_broadcast(&w->changed);
}

int kiln_model_world_wait(struct kiln_world* w, const struct timespec* deadline) {
  if (w->timeout_ms <= 0) return pthread_cond_wait(&w->changed, &w->lock), 1;
  return pthread_cond_timedwait(&w->changed, &w->lock, deadline) != ETIMEDOUT;
}

static int same_group(const int64_t* a, const int64_t* b, int64_t n) {
  return a == b || !memcmp(a, b, (uint64_t)n * sizeof *a);
}

// A meeting that this device has not come to yet is one whose block of it is still missing: the first such in order.
static struct meeting* find(struct kiln_world* w, const int64_t* group, int64_t members, int64_t bytes, int64_t at) {
  struct meeting** end = &w->meetings;
  for (struct meeting* m = w->meetings; m; m = m->next) {
    end = &m->next;
    if (m->members == members && m->bytes == bytes && same_group(m->group, group, members) &&
        !m->data[members * bytes + at])
      return m;
  }
  uint64_t room = (uint64_t)(members * bytes + members);
  struct meeting* m = calloc(1, sizeof *m + room + (uint64_t)members * sizeof *group + 8);
  if (!m) return 0;
  int64_t* copy = (int64_t*)(m->data + (room + 7) / 8 * 8);
  memcpy(copy, group, (uint64_t)members * sizeof *group);
  m->group = copy;
  m->members = members;
  m->bytes = bytes;
  *end = m;
  return m;
}

static int gather(void* self, int64_t device, const int64_t* group, int64_t members, const void* mine, void* all,
                  int64_t bytes) {
  struct kiln_world* w = self;
  int64_t at = 0;
  while (at < members && group[at] != device) ++at;
  if (at == members) return 1;
  pthread_mutex_lock(&w->lock);
  // Once a run has failed nobody meets: the devices that still come fail as those that waited did.
  struct meeting* m = w->failure ? 0 : find(w, group, members, bytes, at);
  int failed = w->failure ? w->failure : KILN_COMMUNICATION;
  if (m) {
    memcpy(m->data + at * bytes, mine, (uint64_t)bytes);
    m->data[members * bytes + at] = 1;
    if (++m->arrived == members) pthread_cond_broadcast(&w->changed);
    const struct timespec deadline = kiln_model_world_deadline(w);
    while (m->arrived < members && !w->failure)
      if (!kiln_model_world_wait(w, &deadline) && m->arrived < members) kiln_model_world_fail(w, KILN_TIMEOUT);
    failed = m->arrived < members ? w->failure : 0;
    if (!failed) {
      memcpy(all, m->data, (uint64_t)(members * bytes));
      if (++m->left == members) {
        struct meeting** p = &w->meetings;
        while (*p != m) p = &(*p)->next;
        *p = m->next;
        free(m);
      }
    }
  }
  pthread_mutex_unlock(&w->lock);
  return failed;
}

static int send(void* self, int64_t device, int64_t channel, const void* data, int64_t bytes) {
  struct kiln_world* w = self;
  struct message* m = message_of(channel < 0 ? device : 0, channel, bytes);
  if (!m) return 1;
  memcpy(m->data, data, (uint64_t)bytes);
  pthread_mutex_lock(&w->lock);
  const int failed = w->failure;
  if (!failed) {
    put_message(&w->messages, m);
    pthread_cond_broadcast(&w->changed);
  }
  pthread_mutex_unlock(&w->lock);
  if (failed) free(m);
  return failed;
}

static int receive(void* self, int64_t device, int64_t channel, void* data, int64_t bytes) {
  struct kiln_world* w = self;
  if (channel >= 0) device = 0;
  pthread_mutex_lock(&w->lock);
  const struct timespec deadline = kiln_model_world_deadline(w);
  for (int late = 0;;) {
    struct message* m = take_message(&w->messages, device, channel);
    if (m) {
      pthread_mutex_unlock(&w->lock);
      const int fits = m->bytes == bytes;
      if (fits) memcpy(data, m->data, (uint64_t)bytes);
      free(m);
      return !fits;
    }
    if (late) kiln_model_world_fail(w, KILN_TIMEOUT);
    if (w->failure) break;
    late = !kiln_model_world_wait(w, &deadline);
  }
  const int failed = w->failure;
  pthread_mutex_unlock(&w->lock);
  return failed;
}

void kiln_model_world_abort(struct kiln_world* w);

static void fail(void* self, int64_t device, int32_t status) {
  (void)status;
  kiln_model_world_abort(self);
  kiln_model_world_withdraw(self, device);
}

// NULL if memory runs out.
struct kiln_world* kiln_model_world_create(int64_t devices) {
  struct kiln_world* w = devices > 0 ? calloc(1, sizeof *w + (uint64_t)devices * sizeof *w->comm) : 0;
  if (!w) return 0;
  pthread_condattr_t steady;
  pthread_condattr_init(&steady);
  pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
  pthread_mutex_init(&w->lock, 0);
  pthread_cond_init(&w->changed, &steady);
  pthread_condattr_destroy(&steady);
  w->devices = devices;
  w->timeout_ms = kiln_model_device_timeout_ms;
  w->looks = sysconf(_SC_NPROCESSORS_ONLN) >= devices ? kLooks : 0;  // else others need it
  for (int64_t d = 0; d < devices; ++d)
    w->comm[d] = (struct kiln_comm){
        w, d, gather, send, receive, fail, kiln_model_world_exchange, kiln_model_world_offer, kiln_model_world_take};
  return w;
}

struct kiln_comm* kiln_model_world_comm(struct kiln_world* w, int64_t device) {
  return device >= 0 && device < w->devices ? &w->comm[device] : 0;
}

void kiln_model_world_set_timeout(struct kiln_world* w, int64_t ms) {
  pthread_mutex_lock(&w->lock);
  w->timeout_ms = ms;
  pthread_mutex_unlock(&w->lock);
}

void kiln_model_world_abort(struct kiln_world* w) {
  pthread_mutex_lock(&w->lock);
  kiln_model_world_fail(w, KILN_COMMUNICATION);
  pthread_mutex_unlock(&w->lock);
}

// No run may be under way here and below.
void kiln_model_world_reset(struct kiln_world* w) {
  while (w->meetings) {
    struct meeting* next = w->meetings->next;
    free(w->meetings);
    w->meetings = next;
  }
  kiln_model_world_quiet(w);
  kiln_model_world_forget_rounds(w);
  drop_messages(&w->messages);
  w->failure = KILN_OK;
}

void kiln_model_world_destroy(struct kiln_world* w) {
  if (!w) return;
  kiln_model_world_stop_helpers(w);
  kiln_model_world_reset(w);
  pthread_mutex_destroy(&w->lock);
  pthread_cond_destroy(&w->changed);
  free(w);
}
