// Exchanges between devices: by the host's own function where it has one, else by gathers of pieces.
//
// Memory: a few KB of the stack. Results are the same bits either way.
#include <stdint.h>
#include <string.h>

#include "runtime_min/abi.h"

enum { kPieces = 32 << 10 };  // bytes of the stack that the pieces of all members take

void kiln_model_combine(const void* how, void* into, const void* other, int64_t elements) {
  const struct kiln_combination* c = how;
  void* arrays[] = {into, (void*)other, into, 0};
  const int64_t block = c->block_elements;
  for (; elements >= block; elements -= block) {
    c->block(arrays, 0, c->block_units);
    for (int k = 0; k < 3; ++k) arrays[k] = (char*)arrays[k] + block * c->element_bytes;
  }
  for (; elements > 0; --elements) {
    c->one(arrays, 0, c->one_units);
    for (int k = 0; k < 3; ++k) arrays[k] = (char*)arrays[k] + c->element_bytes;
  }
}

struct piece {
  const kiln_comm* comm;
  const kiln_exchange* x;
  const int64_t* group;
  int64_t at;     // of this device in the group
  int64_t bytes;  // of one member's piece
  char* all;
};

static int gather(const struct piece* p, const char* mine) {
  return p->comm->gather(p->comm->self, p->comm->device, p->group, p->x->members, mine, p->all, p->bytes);
}

// The pieces of all members, combined into the first.
static void combine(const struct piece* p) {
  const int64_t elements = p->bytes / p->x->element_bytes;
  for (int64_t k = 1; k < p->x->members; ++k) p->x->combine(p->x->how, p->all, p->all + k * p->bytes, elements);
}

// What this device keeps of the pieces at `from` in block `block` of `block_bytes` bytes of every member's array.
static void keep(const struct piece* p, char* result, int64_t block, int64_t block_bytes, int64_t from) {
  const int64_t members = p->x->members, bytes = p->bytes;
  switch (p->x->kind) {
    case KILN_ALL_REDUCE:
      combine(p);
      memcpy(result + block * block_bytes + from, p->all, (uint64_t)bytes);
      return;
    case KILN_REDUCE_SCATTER:
      if (block != p->at) return;
      combine(p);
      memcpy(result + from, p->all, (uint64_t)bytes);
      return;
    case KILN_ALL_TO_ALL:
      if (block != p->at) return;
      for (int64_t k = 0; k < members; ++k)
        memcpy(result + k * block_bytes + from, p->all + k * bytes, (uint64_t)bytes);
      return;
    case KILN_ALL_GATHER:
      for (int64_t k = 0; k < members; ++k)
        memcpy(result + k * block_bytes + from, p->all + k * bytes, (uint64_t)bytes);
      return;
    default:
      if (p->x->source[p->at] < 0)
        memset(result + from, 0, (uint64_t)bytes);
      else
        memcpy(result + from, p->all + p->x->source[p->at] * bytes, (uint64_t)bytes);
  }
}

static int by_gathers(const kiln_comm* comm, const kiln_exchange* x, const int64_t* group, const void* const* arrays,
                      void* const* results) {
  char all[kPieces];
  struct piece p = {comm, x, group, 0, 0, all};
  while (p.at < x->members && group[p.at] != comm->device) ++p.at;
  const int64_t element = x->element_bytes > 0 ? x->element_bytes : 1;
  const int64_t most = kPieces / x->members / element * element;
  if (p.at == x->members || most == 0) return KILN_COMMUNICATION;
  const int blocked = x->kind == KILN_REDUCE_SCATTER || x->kind == KILN_ALL_TO_ALL;
  for (int64_t a = 0; a < x->arrays; ++a) {
    const int64_t blocks = blocked ? x->members : 1, block_bytes = x->bytes[a] / blocks;
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t from = 0; from < block_bytes; from += p.bytes) {
        p.bytes = block_bytes - from < most ? block_bytes - from : most;
        const int code = gather(&p, (const char*)arrays[a] + b * block_bytes + from);
        if (code) return code;
        keep(&p, results[a], b, block_bytes, from);
      }
  }
  return 0;
}

int kiln_model_exchange(const kiln_comm* comm, const kiln_exchange* x, const int64_t* group, const void* const* arrays,
                        void* const* results) {
  if (comm->exchange) return comm->exchange(comm->self, comm->device, x, group, arrays, results);
  return by_gathers(comm, x, group, arrays, results);
}

void* kiln_model_offer(const kiln_comm* comm, const kiln_exchange* x, const int64_t* group, const void* const* arrays,
                       void* const* results) {
  return comm->offer ? comm->offer(comm->self, comm->device, x, group, arrays, results) : 0;
}

// Where the program has the exchange: what was not offered takes place now.
int kiln_model_unless_offered(const kiln_comm* comm, const void* offered, const kiln_exchange* x, const int64_t* group,
                              const void* const* arrays, void* const* results) {
  return offered ? 0 : kiln_model_exchange(comm, x, group, arrays, results);
}

// Where results are used first.
int kiln_model_take(const kiln_comm* comm, void* offered, const kiln_exchange* x, void* const* results) {
  return offered ? comm->take(comm->self, comm->device, offered, x, results) : 0;
}
