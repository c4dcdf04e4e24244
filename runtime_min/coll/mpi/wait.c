// Messages between ranks, and waiting for them: never in MPI, which knows no limit of time.
//
// Cost: a wait asks MPI again and again, as MPI's own waits do. After a millisecond or so without news the thread
// offers
//   its processor to others each time.
// kiln renames kiln_model_* for each model.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "runtime_min/coll/mpi/world.h"

enum {
  kBusyTurns = 20000,  // before the thread yields
  kFirstTurns = 32,    // without a look around
  kExchangesPerLook = 64,
};

int64_t kiln_model_mpi_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int kiln_model_mpi_check(struct kiln_mpi* w, int code, const char* what) {
  if (!code) return 0;
  char why[KILN_MPI_MAX_ERROR_STRING + 1] = "", text[KILN_MPI_MAX_ERROR_STRING + 64];
  int length = 0;
  w->mpi.Error_string(code, why, &length);
  snprintf(text, sizeof text, "%s fails: %s", what, why);
  return kiln_model_mpi_fail(w, KILN_COMMUNICATION, -1, text);
}

int kiln_model_mpi_begin(struct kiln_mpi* w) {
  if (w->failure) return w->failure;
  if (w->one_thread && !pthread_equal(w->thread, pthread_self())) {
    // MPI may not even be asked to tell the others.
    w->failure = KILN_COMMUNICATION;
    snprintf(w->error, sizeof w->error,
             "MPI was initialised for one thread, and this is another: use MPI_THREAD_SERIALIZED");
    return w->failure;
  }
  // To ask MPI is to offer the processor to other ranks: waits ask anyway, so that who never waits is enough here.
  if (++w->exchanges % kExchangesPerLook == 0 && kiln_model_mpi_heard(w)) return w->failure;
  return w->requests ? kiln_model_mpi_fail(w, KILN_COMMUNICATION, -1, "two runs use the rank at once") : 0;
}

// Room for one more message.
static int reserve(struct kiln_mpi* w) {
  if (w->requests < w->most_requests) return 0;
  const uint64_t most = (uint64_t)w->most_requests * 2 + 64;
  void* request = realloc(w->request, most * sizeof *w->request);
  if (request) w->request = request;
  void* peer = realloc(w->peer, most * sizeof *w->peer);
  if (peer) w->peer = peer;
  void* index = realloc(w->index, most * sizeof *w->index);
  if (index) w->index = index;
  void* status = realloc(w->status, most * sizeof *w->status);
  if (status) w->status = status;
  if (!request || !peer || !index || !status)
    return kiln_model_mpi_fail(w, KILN_COMMUNICATION, -1, "there is no memory for messages");
  w->most_requests = (int64_t)most;
  return 0;
}

int kiln_model_mpi_send(struct kiln_mpi* w, const void* data, int64_t bytes, int64_t to) {
  for (int64_t from = 0; from < bytes; from += KILN_MPI_MOST_BYTES) {
    if (reserve(w)) return w->failure;
    const int64_t part = bytes - from < KILN_MPI_MOST_BYTES ? bytes - from : KILN_MPI_MOST_BYTES;
    const int code = w->mpi.Isend((const char*)data + from, (int)part, w->mpi.bytes, (int)to, KILN_MPI_TAG_DATA,
                                  w->comm, &w->request[w->requests]);
    if (code) return kiln_model_mpi_check(w, code, "MPI_Isend");
    w->peer[w->requests++] = (int)to;
  }
  return 0;
}

int kiln_model_mpi_receive(struct kiln_mpi* w, void* data, int64_t bytes, int64_t from) {
  for (int64_t at = 0; at < bytes; at += KILN_MPI_MOST_BYTES) {
    if (reserve(w)) return w->failure;
    const int64_t part = bytes - at < KILN_MPI_MOST_BYTES ? bytes - at : KILN_MPI_MOST_BYTES;
    const int code = w->mpi.Irecv((char*)data + at, (int)part, w->mpi.bytes, (int)from, KILN_MPI_TAG_DATA, w->comm,
                                  &w->request[w->requests]);
    if (code) return kiln_model_mpi_check(w, code, "MPI_Irecv");
    w->peer[w->requests++] = (int)from;
  }
  return 0;
}

int kiln_model_mpi_look(struct kiln_mpi* w, int64_t since, int waits_for) {
  if (atomic_load_explicit(&w->aborted, memory_order_relaxed))
    return kiln_model_mpi_fail(w, KILN_COMMUNICATION, -1, "the host program ended the run");
  if (kiln_model_mpi_heard(w)) return w->failure;
  if (w->routes && kiln_model_mpi_drain(w)) return w->failure;
  if (w->timeout_ms <= 0 || kiln_model_mpi_now() - since < w->timeout_ms) return 0;
  return kiln_model_mpi_fail(w, KILN_TIMEOUT, waits_for,
                             waits_for < 0 ? "nothing came into a queue of the host program in time" : 0);
}

// Takes completed messages off the list; a failed one fails the world.
static int settle(struct kiln_mpi* w, int code, int done) {
  if (code)
    for (int k = 0; k < done; ++k)
      if (code != KILN_MPI_ERR_IN_STATUS || w->status[k].error) {
        char what[64];
        snprintf(what, sizeof what, "a message from or to rank %d", w->peer[w->index[k]]);
        return kiln_model_mpi_check(w, code == KILN_MPI_ERR_IN_STATUS ? w->status[k].error : code, what);
      }
  if (code) return kiln_model_mpi_check(w, code, "MPI_Testsome");
  int64_t kept = 0;
  for (int64_t k = 0; k < w->requests; ++k) {
    if (w->request[k] == w->mpi.none) continue;
    w->request[kept] = w->request[k];
    w->peer[kept++] = w->peer[k];
  }
  w->requests = kept;
  return 0;
}

int kiln_model_mpi_wait(struct kiln_mpi* w) {
  int64_t since = 0,
          looked = 0;  // at most once in a millisecond, and not much less often: on a busy machine turns are long
  for (uint64_t turn = 1; w->requests; ++turn) {
    int done = 0;
    const int code = w->mpi.Testsome((int)w->requests, w->request, &done, w->index, (void*)w->status);
    if (code || done > 0) {
      if (settle(w, code, done)) return w->failure;
      turn = 0;
      since = 0;
      continue;
    }
    if (turn > kBusyTurns) sched_yield();
    if (turn < kFirstTurns) continue;
    const int64_t now = kiln_model_mpi_now();
    if (now == looked) continue;
    looked = now;
    if (!since) since = now;
    if (kiln_model_mpi_look(w, since, w->peer[0])) return w->failure;
  }
  return 0;
}
