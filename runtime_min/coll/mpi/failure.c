// What happens when a rank fails, or does not come: it tells all others, which end their runs, and each says in words
// whose fault it is.
//
// A rank that waits in vain does not know whether the rank that it waits for is gone, or itself waits in vain. So all
// that have stopped tell each other whom they waited for; who is waited for and tells nothing is the one.
// Cost: only in a failure: a few bytes to every rank, and up to kGrace milliseconds.
// kiln renames kiln_model_* for each model.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "runtime_min/coll/mpi/world.h"

enum { kGrace = 100 };  // milliseconds in which the others answer

int kiln_model_mpi_listen(struct kiln_mpi* w) {
  const int code = w->mpi.Irecv(&w->heard, sizeof w->heard, w->mpi.bytes, KILN_MPI_ANY_SOURCE, KILN_MPI_TAG_NOTICE,
                                w->comm, &w->hearing);
  return kiln_model_mpi_check(w, code, "MPI_Irecv");
}

// Whether a notice came, which is then in the list of them.
static int hear(struct kiln_mpi* w) {
  int came = 0;
  if (w->hearing == w->mpi.none || w->mpi.Test(&w->hearing, &came, 0) || !came) return 0;
  if (w->heard.rank < 0 || w->heard.rank >= w->size) return 0;
  w->notices[w->heard.rank] = w->heard;
  w->mpi.Irecv(&w->heard, sizeof w->heard, w->mpi.bytes, KILN_MPI_ANY_SOURCE, KILN_MPI_TAG_NOTICE, w->comm,
               &w->hearing);
  return 1;
}

static void tell(struct kiln_mpi* w, kiln_mpi_request* sent) {
  for (int r = 0; r < w->size; ++r) {
    sent[r] = w->mpi.none;
    if (r != w->rank) w->mpi.Isend(&w->told, sizeof w->told, w->mpi.bytes, r, KILN_MPI_TAG_NOTICE, w->comm, &sent[r]);
  }
}

// Until all others have told what they know, or for a while.
static void collect(struct kiln_mpi* w, kiln_mpi_request* sent) {
  const int64_t since = kiln_model_mpi_now();
  int silent = 1, unsent = 1;
  while ((silent || unsent) && kiln_model_mpi_now() - since < kGrace) {
    while (hear(w)) {
    }
    silent = unsent = 0;
    for (int r = 0; r < w->size; ++r) {
      int done = 1;
      if (sent[r] != w->mpi.none) w->mpi.Test(&sent[r], &done, 0);
      unsent += !done;
      silent += r != w->rank && !w->notices[r].status;
    }
    sched_yield();
  }
  for (int r = 0; r < w->size; ++r)
    if (sent[r] != w->mpi.none) w->mpi.Request_free(&sent[r]);
}

// Follows who waited for whom to the rank that did not wait.
static void explain(struct kiln_mpi* w) {
  int at = w->rank;
  for (int k = 0; k < w->size && w->notices[at].waits_for >= 0; ++k) {
    at = w->notices[at].waits_for;
    if (!w->notices[at].status) {
      if (at != w->rank)
        snprintf(w->error, sizeof w->error, "rank %d did not come within %lld ms, or is gone", at,
                 (long long)w->timeout_ms);
      return;
    }
  }
  if (w->notices[at].waits_for >= 0)
    snprintf(w->error, sizeof w->error, "the ranks wait for each other: they do not make the same calls");
  else if (at != w->rank)
    snprintf(w->error, sizeof w->error, "rank %d failed with status %d", at, (int)w->notices[at].status);
}

// The rank that others waited for, if it is this one; else -1.
static int waited_in_vain(const struct kiln_mpi* w) {
  for (int r = 0; r < w->size; ++r)
    if (w->notices[r].status && w->notices[r].waits_for == w->rank) return r;
  return -1;
}

int kiln_model_mpi_fail(struct kiln_mpi* w, int32_t status, int waits_for, const char* text) {
  if (w->failure) return w->failure;
  w->failure = status;
  w->told = (struct kiln_mpi_notice){w->rank, status, waits_for};
  w->notices[w->rank] = w->told;
  snprintf(w->error, sizeof w->error, "%s", text ? text : "");
  kiln_mpi_request* sent = malloc((uint64_t)w->size * sizeof *sent);
  if (sent && w->comm) {
    tell(w, sent);
    collect(w, sent);
  }
  free(sent);
  kiln_model_mpi_cancel(w);
  if (!text) explain(w);
  return w->failure;
}

// A notice of another rank ends this one's run, with the other's status if nobody's run failed by itself.
int kiln_model_mpi_heard(struct kiln_mpi* w) {
  if (!hear(w)) return 0;
  int by = -1;
  for (int r = 0; r < w->size; ++r)
    if (w->notices[r].status && (by < 0 || w->notices[r].waits_for < 0)) by = r;
  const struct kiln_mpi_notice n = w->notices[by];
  const int late = waited_in_vain(w);
  char text[128] = "";
  if (late >= 0)
    snprintf(text, sizeof text, "rank %d waited for this rank, %d, in vain", late, w->rank);
  else if (n.waits_for < 0)
    snprintf(text, sizeof text, "rank %d failed with status %d", by, (int)n.status);
  // This rank waits too: for whom, the others want to know.
  return kiln_model_mpi_fail(w, n.waits_for < 0 ? KILN_COMMUNICATION : KILN_TIMEOUT, w->requests ? w->peer[0] : by,
                             text[0] ? text : 0);
}

void kiln_model_mpi_cancel(struct kiln_mpi* w) {
  for (int64_t k = 0; k < w->requests; ++k) {
    if (w->request[k] == w->mpi.none) continue;
    int done = 0;
    w->mpi.Cancel(&w->request[k]);
    w->mpi.Test(&w->request[k], &done, 0);
    if (!done) w->mpi.Request_free(&w->request[k]);
  }
  w->requests = 0;
}
