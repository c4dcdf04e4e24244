// What happens when a rank fails, or does not come: it tells all others, which end their runs, and each says in words
// whose fault it is.
//
// A rank that waits in vain does not know whether the rank that it waits for is gone, or itself waits in vain. So all
// that have stopped tell each other whom they waited for; who is waited for and tells nothing is the one.
// Cost: only in a failure: a few bytes to every rank, and up to a second.
// kiln renames kiln_model_* for each model.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "runtime_min/coll/mpi/world.h"

// Milliseconds in which the others answer: a quarter of the limit, within these. Where more than one is silent, all but
// one of them are late: they have the most.
enum { kLeastGrace = 100, kMostGrace = 1000 };

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
  w->heard_last = w->heard.rank;
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

static int64_t grace(const struct kiln_mpi* w) {
  const int64_t quarter = w->timeout_ms / 4;
  if (w->timeout_ms <= 0 || quarter > kMostGrace) return kMostGrace;
  return quarter < kLeastGrace ? kLeastGrace : quarter;
}

// Until all others have told what they know, or for a while.
static void collect(struct kiln_mpi* w, kiln_mpi_request* sent) {
  const int64_t since = kiln_model_mpi_now();
  int silent = 2, unsent = 1;
  while ((silent || unsent) && kiln_model_mpi_now() - since < (silent > 1 ? kMostGrace : grace(w))) {
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

static int told_nothing(const struct kiln_mpi* w, int r) { return r != w->rank && !w->notices[r].status; }

// The rank that others waited for, if it is this one: a rank that did; else -1.
static int waited_in_vain(const struct kiln_mpi* w) {
  for (int r = 0; r < w->size; ++r)
    if (w->notices[r].status && w->notices[r].waits_for == w->rank) return r;
  return -1;
}

// The rank that told nothing and that most others wait for, this one's own waits first; -1: all told something.
static int silent_rank(const struct kiln_mpi* w) {
  int best = -1, most = -1;
  for (int r = 0; r < w->size; ++r) {
    if (!told_nothing(w, r)) continue;
    int waits = 0;
    for (int o = 0; o < w->size; ++o) waits += 2 * (w->notices[o].status && w->notices[o].waits_for == r);
    for (int64_t k = 0, mine = 0; k < w->requests && !mine; ++k) waits += mine = w->peer[k] == r;
    if (waits > most) {
      best = r;
      most = waits;
    }
  }
  return best;
}

// Whose fault it is: one that told nothing; else the end of the chain of who waited for whom, from this rank on.
// Returns -1 if there is none.
static int culprit(const struct kiln_mpi* w) {
  int at = w->rank;
  for (int k = 0; k <= w->size && !told_nothing(w, at); ++k) {
    if (w->notices[at].waits_for < 0) return at;
    at = w->notices[at].waits_for;
  }
  return silent_rank(w);
}

static void explain(struct kiln_mpi* w, int heard) {
  const int at = culprit(w), waiting = waited_in_vain(w);
  if (at >= 0 && at != w->rank && w->notices[at].status)
    snprintf(w->error, sizeof w->error, "rank %d failed with status %d", at, (int)w->notices[at].status);
  else if (at >= 0 && at != w->rank)
    snprintf(w->error, sizeof w->error, "rank %d did not come within %lld ms, or is gone", at,
             (long long)w->timeout_ms);
  else if (heard && waiting >= 0)
    snprintf(w->error, sizeof w->error, "rank %d waited for this rank, %d, in vain", waiting, w->rank);
  else
    snprintf(w->error, sizeof w->error, "the ranks wait for each other: they do not make the same calls");
}

// The world fails: with `text`, or with what the others know.
static int fail(struct kiln_mpi* w, int32_t status, int waits_for, const char* text, int heard) {
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
  if (!text) explain(w, heard);
  kiln_model_mpi_cancel(w);
  return w->failure;
}

int kiln_model_mpi_fail(struct kiln_mpi* w, int32_t status, int waits_for, const char* text) {
  return fail(w, status, waits_for, text, 0);
}

// A notice of another rank ends this one's run: with a failure if a run failed by itself, else as the other's ended.
int kiln_model_mpi_heard(struct kiln_mpi* w) {
  if (!hear(w)) return 0;
  int by = w->heard_last;
  for (int r = 0; r < w->size; ++r)
    if (w->notices[r].status && w->notices[r].waits_for < 0) by = r;
  const int failed = w->notices[by].waits_for < 0;
  char text[64];
  snprintf(text, sizeof text, "rank %d failed with status %d", by, (int)w->notices[by].status);
  // This rank waits too: for whom, the others want to know.
  return fail(w, failed ? KILN_COMMUNICATION : w->notices[by].status, w->requests ? w->peer[0] : by, failed ? text : 0,
              1);
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
