// Devices as threads of one process: rendezvous for gathers, queues for sends. Linked into a program only if it calls
// <model>_world_create. One world serves any number of models.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_min/abi.h"

// One gather of one group: blocks are copied through it, so that members may leave at different times.
struct meeting {
  struct meeting* next;
  int64_t members, bytes, arrived, left;
  const int64_t* group;  // the group's own table, the same for each member
  char data[];
};

struct message {
  struct message* next;
  int64_t device, channel, bytes;
  char data[];
};

struct world {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct meeting* meetings;
  struct message *first, *last;
  int aborted;
  int64_t devices;
  struct kiln_comm comm[];
};

static int same_group(const int64_t* a, const int64_t* b, int64_t n) {
  return a == b || !memcmp(a, b, (uint64_t)n * sizeof *a);
}

// A meeting that this device has not come to yet is one whose block of it is still missing: the first such in order.
static struct meeting* find(struct world* w, const int64_t* group, int64_t members, int64_t bytes, int64_t at) {
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
  struct world* w = self;
  int64_t at = 0;
  while (at < members && group[at] != device) ++at;
  if (at == members) return 1;
  pthread_mutex_lock(&w->lock);
  struct meeting* m = find(w, group, members, bytes, at);
  int failed = !m;
  if (m) {
    memcpy(m->data + at * bytes, mine, (uint64_t)bytes);
    m->data[members * bytes + at] = 1;
    if (++m->arrived == members) pthread_cond_broadcast(&w->changed);
    while (m->arrived < members && !w->aborted) pthread_cond_wait(&w->changed, &w->lock);
    failed = m->arrived < members;
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
  struct world* w = self;
  struct message* m = malloc(sizeof *m + (uint64_t)bytes);
  if (!m) return 1;
  m->next = 0;
  m->device = channel < 0 ? device : 0;
  m->channel = channel;
  m->bytes = bytes;
  memcpy(m->data, data, (uint64_t)bytes);
  pthread_mutex_lock(&w->lock);
  if (w->last)
    w->last->next = m;
  else
    w->first = m;
  w->last = m;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
  return 0;
}

static int receive(void* self, int64_t device, int64_t channel, void* data, int64_t bytes) {
  struct world* w = self;
  if (channel >= 0) device = 0;
  pthread_mutex_lock(&w->lock);
  for (;;) {
    struct message* before = 0;
    for (struct message* m = w->first; m; before = m, m = m->next) {
      if (m->channel != channel || m->device != device) continue;
      int fits = m->bytes == bytes;
      if (fits) memcpy(data, m->data, (uint64_t)bytes);
      if (before)
        before->next = m->next;
      else
        w->first = m->next;
      if (w->last == m) w->last = before;
      pthread_mutex_unlock(&w->lock);
      free(m);
      return !fits;
    }
    if (w->aborted) break;
    pthread_cond_wait(&w->changed, &w->lock);
  }
  pthread_mutex_unlock(&w->lock);
  return 1;
}

// NULL if memory runs out.
struct world* kiln_model_world_create(int64_t devices) {
  struct world* w = calloc(1, sizeof *w + (uint64_t)devices * sizeof *w->comm);
  if (!w) return 0;
  pthread_mutex_init(&w->lock, 0);
  pthread_cond_init(&w->changed, 0);
  w->devices = devices;
  for (int64_t d = 0; d < devices; ++d) w->comm[d] = (struct kiln_comm){w, d, gather, send, receive};
  return w;
}

struct kiln_comm* kiln_model_world_comm(struct world* w, int64_t device) {
  return device >= 0 && device < w->devices ? &w->comm[device] : 0;
}

// Ends every wait with a failure: for a host whose device cannot go on.
void kiln_model_world_abort(struct world* w) {
  pthread_mutex_lock(&w->lock);
  w->aborted = 1;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

// No run may be under way.
void kiln_model_world_destroy(struct world* w) {
  if (!w) return;
  while (w->meetings) {
    struct meeting* next = w->meetings->next;
    free(w->meetings);
    w->meetings = next;
  }
  while (w->first) {
    struct message* next = w->first->next;
    free(w->first);
    w->first = next;
  }
  pthread_mutex_destroy(&w->lock);
  pthread_cond_destroy(&w->changed);
  free(w);
}
