// Reductions between ranks, combined in the group's order: MPI_Allreduce combines in an order of its own, and knows
// neither the program's functions nor its types.
//
// Cost: of an all-reduce of a large array, 2 (n - 1) / n of its bytes for each rank, as any algorithm needs: a member
//   combines one part and gives it to all. Small arrays go whole to all, in fewer rounds, and every member combines
//   them. At most KILN_MPI_WINDOW bytes of memory, which the world keeps.
// kiln renames kiln_model_* for each model.
#include <stdlib.h>
#include <string.h>

#include "runtime_min/coll/mpi/world.h"

enum { kBlock = 16 << 10 };  // bytes that are combined at a time, in the first cache

char* kiln_model_mpi_scratch(struct kiln_mpi* w, int64_t bytes) {
  if (w->scratch && bytes <= w->scratch_bytes) return w->scratch;
  free(w->scratch);
  w->scratch_bytes = 0;
  w->scratch = malloc((uint64_t)bytes + 1);  // not NULL for none
  if (!w->scratch) {
    kiln_model_mpi_fail(w, KILN_COMMUNICATION, -1, "there is no memory for a reduction");
    return 0;
  }
  w->scratch_bytes = bytes;
  return w->scratch;
}

// The arrays of w->sources, combined, to `into`, which may be one of them.
static void fold(const struct kiln_mpi* w, const kiln_exchange* x, char* into, int64_t bytes) {
  _Alignas(KILN_MPI_LINE) char sum[kBlock];
  const int64_t block = kBlock / x->element_bytes * x->element_bytes;
  for (int64_t from = 0; from < bytes; from += block) {
    const int64_t part = bytes - from < block ? bytes - from : block;
    memcpy(sum, w->sources[0] + from, (uint64_t)part);
    for (int64_t k = 1; k < x->members; ++k) x->combine(x->how, sum, w->sources[k] + from, part / x->element_bytes);
    memcpy(into + from, sum, (uint64_t)part);
  }
}

static int64_t in_lines(int64_t bytes) { return (bytes + KILN_MPI_LINE - 1) / KILN_MPI_LINE * KILN_MPI_LINE; }

// All arrays of all members to everyone.
static int reduce_small(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at, int64_t each,
                        const void* const* arrays, void* const* results) {
  char* all = kiln_model_mpi_scratch(w, x->members * each);
  if (!all) return w->failure;
  char* to = all + at * each;
  for (int64_t a = 0; a < x->arrays; to += in_lines(x->bytes[a++])) memcpy(to, arrays[a], (uint64_t)x->bytes[a]);
  if (kiln_model_mpi_gather_blocks(w, group, x->members, at, all, each, all + at * each)) return w->failure;
  int64_t from = 0;
  for (int64_t a = 0; a < x->arrays; from += in_lines(x->bytes[a++])) {
    for (int64_t k = 0; k < x->members; ++k) w->sources[k] = all + k * each + from;
    fold(w, x, results[a], x->bytes[a]);
  }
  return 0;
}

// Member k combines bytes [k * stride, k * stride + each) of every member's array, as far as there are as many.
struct parts {
  const char* array;
  int64_t stride, each, bytes;
};

static int64_t begin(const struct parts* p, int64_t k) { return k * p->stride < p->bytes ? k * p->stride : p->bytes; }

static int64_t length(const struct parts* p, int64_t k) {
  const int64_t rest = p->bytes - begin(p, k);
  return rest < p->each ? rest : p->each;
}

// Every member gets the others' arrays where its own part is, in `others`: begins to.
static int begin_parts(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                       const struct parts* p, char* others) {
  const int64_t mine = length(p, at);
  for (int64_t k = 1; k < x->members; ++k) {
    const int64_t to = (at + x->members - k) % x->members, from = (at + k) % x->members;
    if (kiln_model_mpi_receive(w, others + from * in_lines(mine), mine, group[from]) ||
        kiln_model_mpi_send(w, p->array + begin(p, to), length(p, to), group[to]))
      return w->failure;
  }
  return 0;
}

// What begin_parts asked for has come: combines it into `result`.
static void fold_parts(struct kiln_mpi* w, const kiln_exchange* x, int64_t at, const struct parts* p,
                       const char* others, char* result) {
  const int64_t mine = length(p, at);
  for (int64_t k = 0; k < x->members; ++k) w->sources[k] = others + k * in_lines(mine);
  w->sources[at] = p->array + begin(p, at);
  fold(w, x, result, mine);
}

// Every member gives its part of the result to all: begins to.
static int begin_spread(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                        const struct parts* p, char* result) {
  for (int64_t k = 1; k < x->members; ++k) {
    const int64_t to = (at + x->members - k) % x->members, from = (at + k) % x->members;
    if (kiln_model_mpi_receive(w, result + begin(p, from), length(p, from), group[from]) ||
        kiln_model_mpi_send(w, result + begin(p, at), length(p, at), group[to]))
      return w->failure;
  }
  return 0;
}

// Bytes that a member combines at a time: whole lines, and whole elements (of at most KILN_MPI_LINE).
static int64_t window(const kiln_exchange* x) {
  const int64_t each = KILN_MPI_WINDOW / x->members / KILN_MPI_LINE * KILN_MPI_LINE;
  return each > KILN_MPI_PART ? KILN_MPI_PART : each ? each : KILN_MPI_LINE;
}

// Memory for the parts that a member combines at a time, of arrays whose parts have `most` bytes.
static char* memory_of_parts(struct kiln_mpi* w, const kiln_exchange* x, int64_t most) {
  return kiln_model_mpi_scratch(w, x->members * in_lines(most < window(x) ? most : window(x)));
}

// One window after the other: while the results of one go to all, the parts of the next come.
static int reduce_large(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at, int64_t bytes,
                        const char* array, char* result) {
  const int64_t most = window(x) * x->members;
  char* others = memory_of_parts(w, x, (bytes + x->members - 1) / x->members);
  if (!others) return w->failure;
  for (int64_t done = 0; done < bytes; done += most) {
    const int64_t now = bytes - done < most ? bytes - done : most;
    const int64_t each = in_lines((now + x->members - 1) / x->members);
    const struct parts p = {array + done, each, each, now};
    if (begin_parts(w, x, group, at, &p, others) || kiln_model_mpi_wait(w)) return w->failure;
    fold_parts(w, x, at, &p, others, result + done + begin(&p, at));
    if (begin_spread(w, x, group, at, &p, result + done)) return w->failure;
  }
  return kiln_model_mpi_wait(w);
}

int kiln_model_mpi_all_reduce(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                              const void* const* arrays, void* const* results) {
  int64_t each = 0;
  for (int64_t a = 0; a < x->arrays; ++a) each += in_lines(x->bytes[a]);
  if (x->arrays == 1) each = x->bytes[0];  // no other begins behind it
  if (x->members * each <= KILN_MPI_SMALL) return reduce_small(w, x, group, at, each, arrays, results);
  for (int64_t a = 0; a < x->arrays; ++a)
    if (reduce_large(w, x, group, at, x->bytes[a], arrays[a], results[a])) return w->failure;
  return 0;
}

int kiln_model_mpi_reduce_scatter(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                                  const void* const* arrays, void* const* results) {
  for (int64_t a = 0; a < x->arrays; ++a) {
    const int64_t block = x->bytes[a] / x->members;
    char* others = memory_of_parts(w, x, block);
    if (!others) return w->failure;
    for (int64_t done = 0; done < block; done += window(x)) {
      const int64_t now = block - done < window(x) ? block - done : window(x);
      const struct parts p = {(const char*)arrays[a] + done, block, now, x->bytes[a] - done};
      if (begin_parts(w, x, group, at, &p, others) || kiln_model_mpi_wait(w)) return w->failure;
      fold_parts(w, x, at, &p, others, (char*)results[a] + done);
    }
  }
  return 0;
}
