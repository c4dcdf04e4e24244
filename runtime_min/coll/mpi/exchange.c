// Exchanges between ranks: every array goes straight to where it is wanted, all arrays at once.
//
// Guarantees: the bits of devices as threads; reductions (reduce.c) combine in the group's order.
// kiln renames kiln_model_* for each model.
#include <string.h>

#include "runtime_min/coll/mpi/world.h"

static int64_t sum(const kiln_exchange* x) {
  int64_t bytes = 0;
  for (int64_t a = 0; a < x->arrays; ++a) bytes += x->bytes[a];
  return bytes;
}

// Many small arrays as one.
static int gather_packed(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at, int64_t bytes,
                         const void* const* arrays, void* const* results) {
  char* all = kiln_model_mpi_scratch(w, x->members * bytes);
  if (!all) return w->failure;
  char* to = all + at * bytes;
  for (int64_t a = 0; a < x->arrays; to += x->bytes[a++]) memcpy(to, arrays[a], (uint64_t)x->bytes[a]);
  if (kiln_model_mpi_gather_blocks(w, group, x->members, at, all, bytes, all + at * bytes)) return w->failure;
  const char* from = all;
  for (int64_t k = 0; k < x->members; ++k)
    for (int64_t a = 0; a < x->arrays; from += x->bytes[a++])
      memcpy((char*)results[a] + k * x->bytes[a], from, (uint64_t)x->bytes[a]);
  return 0;
}

static int all_gather(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                      const void* const* arrays, void* const* results) {
  const int64_t bytes = sum(x);
  if (x->arrays > 1 && x->members * bytes <= KILN_MPI_SMALL)
    return gather_packed(w, x, group, at, bytes, arrays, results);
  for (int64_t a = 0; a < x->arrays; ++a)
    if (kiln_model_mpi_gather_blocks(w, group, x->members, at, results[a], x->bytes[a], arrays[a])) return w->failure;
  return 0;
}

static int all_to_all(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                      const void* const* arrays, void* const* results) {
  for (int64_t k = 1; k < x->members; ++k) {
    const int64_t to = (at + x->members - k) % x->members, from = (at + k) % x->members;
    for (int64_t a = 0; a < x->arrays; ++a) {
      const int64_t block = x->bytes[a] / x->members;
      if (kiln_model_mpi_receive(w, (char*)results[a] + from * block, block, group[from]) ||
          kiln_model_mpi_send(w, (const char*)arrays[a] + to * block, block, group[to]))
        return w->failure;
    }
  }
  for (int64_t a = 0; a < x->arrays; ++a) {
    const int64_t block = x->bytes[a] / x->members;
    memcpy((char*)results[a] + at * block, (const char*)arrays[a] + at * block, (uint64_t)block);
  }
  return kiln_model_mpi_wait(w);
}

// A member gives its array to all that name it as their source.
static int permute(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                   const void* const* arrays, void* const* results) {
  const int64_t from = x->source[at];
  for (int64_t a = 0; a < x->arrays; ++a) {
    if (from >= 0 && from != at && kiln_model_mpi_receive(w, results[a], x->bytes[a], group[from])) return w->failure;
    for (int64_t k = 0; k < x->members; ++k)
      if (k != at && x->source[k] == at && kiln_model_mpi_send(w, arrays[a], x->bytes[a], group[k])) return w->failure;
  }
  for (int64_t a = 0; a < x->arrays; ++a) {
    if (from < 0) memset(results[a], 0, (uint64_t)x->bytes[a]);
    if (from == at) memcpy(results[a], arrays[a], (uint64_t)x->bytes[a]);
  }
  return kiln_model_mpi_wait(w);
}

int kiln_model_mpi_exchange(void* self, int64_t device, const kiln_exchange* x, const int64_t* group,
                            const void* const* arrays, void* const* results) {
  struct kiln_mpi* w = self;
  if (kiln_model_mpi_begin(w)) return w->failure;
  int64_t at = 0;
  while (at < x->members && group[at] != device) ++at;
  if (at == x->members) return KILN_COMMUNICATION;
  switch (x->kind) {
    case KILN_ALL_REDUCE:
      return kiln_model_mpi_all_reduce(w, x, group, at, arrays, results);
    case KILN_REDUCE_SCATTER:
      return kiln_model_mpi_reduce_scatter(w, x, group, at, arrays, results);
    case KILN_ALL_GATHER:
      return all_gather(w, x, group, at, arrays, results);
    case KILN_ALL_TO_ALL:
      return all_to_all(w, x, group, at, arrays, results);
    default:
      return permute(w, x, group, at, arrays, results);
  }
}
