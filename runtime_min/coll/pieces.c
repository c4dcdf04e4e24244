// What the members of an exchange get, byte by byte: copied and combined from where the others' arrays lie.
#include <string.h>

#include "runtime_min/coll/round.h"

enum { kBlock = 4096 };  // bytes that are combined at a time, in the first cache

int64_t kiln_model_world_part(const kiln_exchange* x, int64_t a, int64_t k) {
  const int64_t bytes = x->bytes[a], lines = (bytes + kLine - 1) / kLine;
  const int64_t each = (lines + x->members - 1) / x->members * kLine;
  return k * each < bytes ? k * each : bytes;
}

int64_t kiln_model_world_result_bytes(const kiln_exchange* x, int64_t a) {
  switch (x->kind) {
    case KILN_ALL_GATHER:
      return x->bytes[a] * x->members;
    case KILN_REDUCE_SCATTER:
      return x->bytes[a] / x->members;
    default:
      return x->bytes[a];
  }
}

// There at once, or, where the result is the array of a later member, by way of memory of this thread's. Nobody else
// reads that array there.
void kiln_model_world_combine(const kiln_exchange* x, const struct party* party, int64_t a, int64_t from, int64_t to,
                              char* result) {
  _Alignas(kLine) char sum[kBlock];
  int in_place = 0;
  for (int64_t k = 1; k < x->members; ++k) in_place |= (const char*)party[k].arrays[a] + from == result;
  const int64_t block = kBlock / x->element_bytes * x->element_bytes;
  for (int64_t at = from; at < to; at += block) {
    const int64_t bytes = to - at < block ? to - at : block;
    char *end = result + (at - from), *into = in_place ? sum : end;
    if (into != (const char*)party[0].arrays[a] + at)
      memcpy(into, (const char*)party[0].arrays[a] + at, (uint64_t)bytes);
    for (int64_t k = 1; k < x->members; ++k)
      x->combine(x->how, into, (const char*)party[k].arrays[a] + at, bytes / x->element_bytes);
    if (in_place) memcpy(end, sum, (uint64_t)bytes);
  }
}

// Blocks of `block` bytes, one of each member, that begin `skip` bytes into its array.
static void blocks(const struct party* party, int64_t a, int64_t at, int64_t block, int64_t skip, int64_t from,
                   int64_t to) {
  for (int64_t bytes; from < to; from += bytes) {
    const int64_t k = from / block, inside = from - k * block;
    bytes = block - inside < to - from ? block - inside : to - from;
    memcpy((char*)party[at].results[a] + from, (const char*)party[k].arrays[a] + skip + inside, (uint64_t)bytes);
  }
}

void kiln_model_world_fetch(const kiln_exchange* x, const struct party* party, int64_t a, int64_t at, int64_t from,
                            int64_t to) {
  const int64_t block = x->bytes[a] / x->members;
  char* result = (char*)party[at].results[a] + from;
  switch (x->kind) {
    case KILN_ALL_REDUCE:
      kiln_model_world_combine(x, party, a, from, to, result);
      return;
    case KILN_REDUCE_SCATTER:
      kiln_model_world_combine(x, party, a, at * block + from, at * block + to, result);
      return;
    case KILN_ALL_GATHER:
      blocks(party, a, at, x->bytes[a], 0, from, to);
      return;
    case KILN_ALL_TO_ALL:
      blocks(party, a, at, block, at * block, from, to);
      return;
    default:
      if (x->source[at] < 0)
        memset(result, 0, (uint64_t)(to - from));
      else
        memcpy(result, (const char*)party[x->source[at]].arrays[a] + from, (uint64_t)(to - from));
  }
}

void kiln_model_world_collect(const kiln_exchange* x, const struct party* party, int64_t a, int64_t at, int64_t from,
                              int64_t to) {
  for (int64_t k = 0; k < x->members; ++k) {
    const int64_t begin = kiln_model_world_part(x, a, k), end = kiln_model_world_part(x, a, k + 1);
    const int64_t first = begin > from ? begin : from, last = end < to ? end : to;
    if (k != at && first < last)
      memcpy((char*)party[at].results[a] + first, (const char*)party[k].results[a] + first, (uint64_t)(last - first));
  }
}
