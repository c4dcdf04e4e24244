// Messages that wait in queues of a process, in the order in which they were sent. C11.
//
// Callers hold the lock of what the queue belongs to.
#ifndef KILN_RUNTIME_MIN_COLL_MESSAGES_H_
#define KILN_RUNTIME_MIN_COLL_MESSAGES_H_

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct message {
  struct message* next;
  int64_t device, channel, bytes;
  char data[];
};

struct messages {
  struct message *first, *last;
};

// A message with room for `bytes` bytes; NULL if memory runs out.
static inline struct message* message_of(int64_t device, int64_t channel, int64_t bytes) {
  struct message* m = malloc(sizeof *m + (uint64_t)bytes);
  if (!m) return 0;
  m->next = 0;
  m->device = device;
  m->channel = channel;
  m->bytes = bytes;
  return m;
}

static inline void put_message(struct messages* q, struct message* m) {
  if (q->last)
    q->last->next = m;
  else
    q->first = m;
  q->last = m;
}

// The first message of that channel and device, which leaves the queue; NULL if there is none.
static inline struct message* take_message(struct messages* q, int64_t device, int64_t channel) {
  struct message* before = 0;
  for (struct message* m = q->first; m; before = m, m = m->next) {
    if (m->channel != channel || m->device != device) continue;
    if (before)
      before->next = m->next;
    else
      q->first = m->next;
    if (q->last == m) q->last = before;
    return m;
  }
  return 0;
}

static inline void drop_messages(struct messages* q) {
  while (q->first) {
    struct message* next = q->first->next;
    free(q->first);
    q->first = next;
  }
  q->last = 0;
}

#endif  // KILN_RUNTIME_MIN_COLL_MESSAGES_H_
