// Gathers: the block of every member to every member.
//
// Small blocks go in as many rounds as the number of members has bits: in round k a member passes on the 2^k blocks
// that it has. Where the members are a power of two these lie side by side, and two members swap theirs: one message.
// Large ones go straight from their owners, all at once. Either way a member receives each byte once.
// kiln renames kiln_model_* for each model.
#include <string.h>

#include "runtime_min/coll/mpi/world.h"

// Blocks [first, first + count) around the ring of members: to or from one of them, in two pieces where the ring ends.
static int send_blocks(struct kiln_mpi* w, const char* all, int64_t members, int64_t bytes, int64_t first,
                       int64_t count, int64_t to) {
  const int64_t straight = first + count <= members ? count : members - first;
  if (kiln_model_mpi_send(w, all + first * bytes, straight * bytes, to)) return w->failure;
  return kiln_model_mpi_send(w, all, (count - straight) * bytes, to);
}

static int receive_blocks(struct kiln_mpi* w, char* all, int64_t members, int64_t bytes, int64_t first, int64_t count,
                          int64_t from) {
  const int64_t straight = first + count <= members ? count : members - first;
  if (kiln_model_mpi_receive(w, all + first * bytes, straight * bytes, from)) return w->failure;
  return kiln_model_mpi_receive(w, all, (count - straight) * bytes, from);
}

static int in_swaps(struct kiln_mpi* w, const int64_t* group, int64_t members, int64_t at, char* all, int64_t bytes) {
  for (int64_t step = 1; step < members; step *= 2) {
    const int64_t other = at ^ step, mine = at & -step, theirs = other & -step;
    if (kiln_model_mpi_receive(w, all + theirs * bytes, step * bytes, group[other]) ||
        kiln_model_mpi_send(w, all + mine * bytes, step * bytes, group[other]) || kiln_model_mpi_wait(w))
      return w->failure;
  }
  return 0;
}

static int in_rounds(struct kiln_mpi* w, const int64_t* group, int64_t members, int64_t at, char* all, int64_t bytes) {
  if ((members & (members - 1)) == 0) return in_swaps(w, group, members, at, all, bytes);
  for (int64_t step = 1; step < members; step *= 2) {
    const int64_t count = step < members - step ? step : members - step;
    const int64_t to = (at + members - step) % members, from = (at + step) % members;
    if (receive_blocks(w, all, members, bytes, from, count, group[from]) ||
        send_blocks(w, all, members, bytes, at, count, group[to]) || kiln_model_mpi_wait(w))
      return w->failure;
  }
  return 0;
}

int kiln_model_mpi_gather_blocks(struct kiln_mpi* w, const int64_t* group, int64_t members, int64_t at, char* all,
                                 int64_t bytes, const void* mine) {
  char* place = all + at * bytes;
  if (members * bytes <= KILN_MPI_SMALL) {
    if (mine != place) memcpy(place, mine, (uint64_t)bytes);
    return in_rounds(w, group, members, at, all, bytes);
  }
  for (int64_t k = 1; k < members; ++k) {
    const int64_t to = (at + members - k) % members, from = (at + k) % members;
    if (kiln_model_mpi_receive(w, all + from * bytes, bytes, group[from]) ||
        kiln_model_mpi_send(w, mine, bytes, group[to]))
      return w->failure;
  }
  if (mine != place) memcpy(place, mine, (uint64_t)bytes);  // while the others' are under way
  return kiln_model_mpi_wait(w);
}

int kiln_model_mpi_gather(void* self, int64_t device, const int64_t* group, int64_t members, const void* mine,
                          void* all, int64_t bytes) {
  struct kiln_mpi* w = self;
  if (kiln_model_mpi_begin(w)) return w->failure;
  int64_t at = 0;
  while (at < members && group[at] != device) ++at;
  if (at == members) return KILN_COMMUNICATION;
  return kiln_model_mpi_gather_blocks(w, group, members, at, all, bytes, mine);
}
