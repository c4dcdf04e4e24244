// Queues: of the host program, which is this process (infeed, outfeed, channels without a route), and channels that the
// host program has laid between two ranks.
//
// A rank that waits for anything takes what has come through channels into its own queue, so ranks that send to each
// other do not wait for each other.
// kiln renames kiln_model_* for each model.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime_min/coll/mpi/world.h"

enum { kNap = 20000 };  // nanoseconds between looks into a queue

static const struct kiln_mpi_route* route_of(const struct kiln_mpi* w, int64_t channel) {
  const struct kiln_mpi_route* r = w->routes;
  while (r && r->channel != channel) r = r->next;
  return r;
}

static int tag_of(int64_t channel) { return KILN_MPI_TAG_CHANNEL + (int)channel; }

static int keep(struct kiln_mpi* w, struct message* m) {
  pthread_mutex_lock(&w->lock);
  put_message(&w->messages, m);
  pthread_mutex_unlock(&w->lock);
  return 0;
}

// Receives one message, whose first part is `bytes` bytes.
static int receive_now(struct kiln_mpi* w, const struct kiln_mpi_route* r, int64_t bytes) {
  struct message* m = message_of(r->to, r->channel, bytes);
  if (!m) return kiln_model_mpi_fail(w, KILN_COMMUNICATION, -1, "there is no memory for a message");
  kiln_mpi_request request = w->mpi.none;
  const int code = w->mpi.Irecv(m->data, (int)bytes, w->mpi.bytes, r->from, tag_of(r->channel), w->comm, &request);
  const int64_t since = kiln_model_mpi_now();
  for (int done = 0; !code && !done;)
    if (w->mpi.Test(&request, &done, 0) ||
        (!done && w->timeout_ms > 0 && kiln_model_mpi_now() - since >= w->timeout_ms)) {
      // The message's memory is MPI's as long as it may come.
      w->mpi.Request_free(&request);
      return kiln_model_mpi_fail(w, KILN_TIMEOUT, r->from, 0);
    }
  if (!code) return keep(w, m);
  free(m);
  return kiln_model_mpi_check(w, code, "MPI_Irecv");
}

int kiln_model_mpi_drain(struct kiln_mpi* w) {
  for (const struct kiln_mpi_route* r = w->routes; r; r = r->next) {
    int came = r->to == w->rank;
    struct kiln_mpi_status status = {0};
    while (came) {
      if (w->mpi.Iprobe(r->from, tag_of(r->channel), w->comm, &came, (void*)&status)) came = 0;
      if (came && receive_now(w, r, (int64_t)status.bytes)) return w->failure;
    }
  }
  return 0;
}

// Waits until the receiver has the message, so that nothing is under way when a run ends.
static int send_along(struct kiln_mpi* w, const struct kiln_mpi_route* r, const void* data, int64_t bytes) {
  if (kiln_model_mpi_begin(w)) return w->failure;
  if (bytes > KILN_MPI_MOST_BYTES)
    return kiln_model_mpi_fail(w, KILN_COMMUNICATION, -1, "a message of a channel has more than 1 GiB");
  kiln_mpi_request request = w->mpi.none;
  const int code = w->mpi.Isend(data, (int)bytes, w->mpi.bytes, r->to, tag_of(r->channel), w->comm, &request);
  if (code) return kiln_model_mpi_check(w, code, "MPI_Isend");
  const int64_t since = kiln_model_mpi_now();
  for (int done = 0; !done;) {
    if (w->mpi.Test(&request, &done, 0)) done = 1;
    if (!done && kiln_model_mpi_look(w, since, r->to)) {
      w->mpi.Request_free(&request);
      return w->failure;
    }
  }
  return 0;
}

static int wrong_end(struct kiln_mpi* w, const struct kiln_mpi_route* r, const char* which, int end) {
  char text[96];
  snprintf(text, sizeof text, "channel %lld leads %s rank %d, and this is rank %d", (long long)r->channel, which, end,
           w->rank);
  return kiln_model_mpi_fail(w, KILN_COMMUNICATION, -1, text);
}

int kiln_model_mpi_put(void* self, int64_t device, int64_t channel, const void* data, int64_t bytes) {
  struct kiln_mpi* w = self;
  const struct kiln_mpi_route* r = channel >= 0 ? route_of(w, channel) : 0;
  if (r && r->from != w->rank) return wrong_end(w, r, "from", r->from);
  if (r && r->to != w->rank) return send_along(w, r, data, bytes);
  struct message* m = message_of(device, channel, bytes);
  if (!m) return KILN_COMMUNICATION;
  memcpy(m->data, data, (uint64_t)bytes);
  return keep(w, m);
}

// The host program waits for what the model sends, on a thread of its own, and the model for what the host sends. Only
// the model may ask MPI.
static int wait_in_process(struct kiln_mpi* w, int64_t channel, int64_t since) {
  if (w->timeout_ms <= 0 || kiln_model_mpi_now() - since < w->timeout_ms) return w->failure;
  pthread_mutex_lock(&w->lock);
  if (channel >= 0 && !w->error[0])
    snprintf(w->error, sizeof w->error, "nothing came into channel %lld, which was not laid between ranks",
             (long long)channel);
  pthread_mutex_unlock(&w->lock);
  return KILN_TIMEOUT;
}

int kiln_model_mpi_take(void* self, int64_t device, int64_t channel, void* data, int64_t bytes) {
  struct kiln_mpi* w = self;
  const struct kiln_mpi_route* r = channel >= 0 ? route_of(w, channel) : 0;
  if (r && r->to != w->rank) return wrong_end(w, r, "to", r->to);
  const int64_t since = kiln_model_mpi_now();
  for (;;) {
    pthread_mutex_lock(&w->lock);
    struct message* m = take_message(&w->messages, device, channel);
    pthread_mutex_unlock(&w->lock);
    if (m) {
      const int fits = m->bytes == bytes;
      if (fits) memcpy(data, m->data, (uint64_t)bytes);
      free(m);
      return !fits;
    }
    int failed = w->failure;
    if (!failed && (r || channel == KILN_INFEED))
      failed = kiln_model_mpi_look(w, since, r ? r->from : -1);
    else if (!failed)
      failed = wait_in_process(w, channel, since);
    if (failed) return failed;
    const struct timespec nap = {0, kNap};
    nanosleep(&nap, 0);
  }
}
