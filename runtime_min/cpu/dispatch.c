// <model>_run: checks the call, finds the best CPU level that the archive holds, and runs it.
// kiln renames kiln_model_* for each model.
#include <stddef.h>
#include <stdint.h>

#include "runtime_min/abi.h"
#include "runtime_min/cpu/fp_environment.h"
#include "runtime_min/cpu/level.h"

// Written by the compiler (aot/targets/cpu.cc).
__attribute__((visibility("hidden"))) extern const struct kiln_program kiln_model_program;

// What the first call found.
static kiln_entry* chosen;

__attribute__((minsize, noinline)) static kiln_entry* choose(const struct kiln_program* p) {
  kiln_entry* f = NULL;
  unsigned held = 0;
  for (int level = 0; level < KILN_LEVELS; ++level)
    if (p->entries[level]) held |= 1u << level;
  const int best = best_level(held);
  if (best >= 0) f = p->entries[best];
  __atomic_store_n(&chosen, f, __ATOMIC_RELAXED);
  return f;
}

static int32_t check_array(const struct kiln_port* p, const void* data) {
  if (!p->bytes) return KILN_OK;
  if (!data) return KILN_NULL_POINTER;
  return (uintptr_t)data & (uint64_t)(p->alignment - 1) ? KILN_MISALIGNED : KILN_OK;
}

static int32_t check_arena(int64_t bytes, struct kiln_arena arena) {
  if (!bytes) return KILN_OK;
  if (!arena.data) return KILN_NULL_POINTER;
  if ((uintptr_t)arena.data & (KILN_ARENA_ALIGNMENT - 1)) return KILN_MISALIGNED;
  return arena.bytes < (uint64_t)bytes ? KILN_ARENA_SIZE : KILN_OK;
}

// Calls often come again with the arrays of the call before. A hash of the addresses of calls that passed, in a place
// that it says, spares looking at them again: two calls share one about once in 2^58.
enum { PASSED = 8 };
static uint64_t passed[PASSED];

// Each address has a factor of its own, so that products do not wait for each other; two at a time, since a round of
// the loop takes longer than a product.
__attribute__((minsize)) static uint64_t sum_of(uint64_t factor, void* const* at, int64_t count) {
  uint64_t sum = 0;
#pragma clang loop unroll(disable)
  for (; count > 1; count -= 2, at += 2) {
    sum += (uintptr_t)at[0] * factor + (uintptr_t)at[1] * (factor + 0x94d049bb133111ebu);
    factor = (factor << 9 | factor >> 55) + 0x1ce4e5b9;
  }
  return count ? sum + (uintptr_t)*at * factor : sum;
}

__attribute__((minsize)) static uint64_t hash_of(const struct kiln_program* p, const struct kiln_call* c) {
  const uint64_t factor = 0xbf58476d1ce4e5b9u;
  const uint64_t arenas = ((uintptr_t)c->arena.data * factor + (uintptr_t)c->slow_arena.data) * factor;
  return (sum_of(factor, c->arguments, p->arguments) + sum_of(0xd6e8feb86659fd93u, c->results, p->results) + arenas) |
         1;
}

// An argument that states the size of a dimension.
__attribute__((minsize)) static int32_t check_extent(const struct kiln_port* p, const void* data) {
  if (p->low > p->high) return KILN_OK;
  const int64_t v = p->bytes == 8   ? *(const int64_t*)data
                    : p->bytes == 4 ? *(const int32_t*)data
                    : p->bytes == 2 ? *(const int16_t*)data
                                    : *(const int8_t*)data;
  return v < p->low || v > p->high ? KILN_DIMENSION : KILN_OK;
}

// Bytes of an array or an arena.
struct span {
  uintptr_t begin, end;
};

// What a run writes, in the order of memory; programs that write more do not check it (aot/targets/cpu.cc).
struct written {
  int64_t count;
  struct span of[KILN_MOST_WRITTEN];
};

static struct span span_of(const void* data, int64_t bytes) {
  return (struct span){(uintptr_t)data, (uintptr_t)data + (uint64_t)bytes};
}

// How many of them begin before `s` does.
__attribute__((minsize)) static int64_t place_of(const struct written* w, struct span s) {
  int64_t low = 0, high = w->count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (w->of[middle].begin <= s.begin)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int overlaps(const struct written* w, int64_t place, struct span s) {
  if (place && w->of[place - 1].end > s.begin) return 1;
  return place < w->count && w->of[place].begin < s.end;
}

// False if it overlaps what is there.
__attribute__((minsize)) static int add_written(struct written* w, const void* data, int64_t bytes) {
  if (!bytes) return 1;
  const struct span s = span_of(data, bytes);
  const int64_t place = place_of(w, s);
  if (overlaps(w, place, s)) return 0;
  for (int64_t k = w->count++; k > place; --k) w->of[k] = w->of[k - 1];
  w->of[place] = s;
  return 1;
}

__attribute__((minsize)) static int32_t check_overlap(const struct kiln_program* p, const struct kiln_call* c) {
  const struct kiln_port* result = p->port + p->arguments;
  struct written w;
  w.count = 0;
  for (int64_t k = 0; k < p->results; ++k)
    if (result[k].alias < 0 && !add_written(&w, c->results[k], result[k].bytes)) return KILN_OVERLAP;
  for (int64_t k = 0; k < p->arguments; ++k)
    if (p->port[k].alias >= 0 && !add_written(&w, c->arguments[k], p->port[k].bytes)) return KILN_OVERLAP;
  if (!add_written(&w, c->arena.data, p->arena_bytes)) return KILN_OVERLAP;
  if (!add_written(&w, c->slow_arena.data, p->slow_arena_bytes)) return KILN_OVERLAP;
  for (int64_t k = 0; k < p->arguments; ++k) {
    if (p->port[k].alias >= 0 || !p->port[k].bytes) continue;
    const struct span s = span_of(c->arguments[k], p->port[k].bytes);
    if (overlaps(&w, place_of(&w, s), s)) return KILN_OVERLAP;
  }
  return KILN_OK;
}

// Everything about arrays and arenas that their addresses say.
__attribute__((minsize, noinline)) static int32_t check_addresses(const struct kiln_program* p,
                                                                  const struct kiln_call* c) {
  const struct kiln_port* result = p->port + p->arguments;
  int32_t status;
  for (int64_t k = 0; k < p->arguments; ++k)
    if ((status = check_array(&p->port[k], c->arguments[k]))) return status;
  for (int64_t k = 0; k < p->results; ++k)
    if (result[k].alias < 0 && (status = check_array(&result[k], c->results[k]))) return status;
  if ((status = check_arena(p->arena_bytes, c->arena))) return status;
  if ((status = check_arena(p->slow_arena_bytes, c->slow_arena))) return status;
  return p->check_overlap ? check_overlap(p, c) : KILN_OK;
}

__attribute__((minsize)) static int32_t check(const struct kiln_program* p, const struct kiln_call* c) {
  int32_t status;
  if (p->devices) {
    const struct kiln_comm* m = c->comm;
    if (!m || !m->gather || !m->send || !m->receive) return KILN_NULL_POINTER;
    if (m->device < 0 || m->device >= p->devices) return KILN_DEVICE;
  }
  if (c->pool && (!c->pool->size || !c->pool->submit || !c->pool->help)) return KILN_NULL_POINTER;
  if ((p->arguments && !c->arguments) || (p->results && !c->results)) return KILN_NULL_POINTER;
  if (c->arena.bytes < (uint64_t)p->arena_bytes || c->slow_arena.bytes < (uint64_t)p->slow_arena_bytes)
    return check_addresses(p, c);
  const uint64_t hash = hash_of(p, c);
  uint64_t* place = &passed[hash >> 61];
  if (__atomic_load_n(place, __ATOMIC_RELAXED) != hash) {
    if ((status = check_addresses(p, c))) return status;
    __atomic_store_n(place, hash, __ATOMIC_RELAXED);
  }
  for (int64_t k = 0; k < p->extents; ++k)
    if ((status = check_extent(&p->port[k], c->arguments[k]))) return status;
  return KILN_OK;
}

__attribute__((minsize)) int32_t kiln_model_run(const struct kiln_call* c) {
  const struct kiln_program* p = &kiln_model_program;
  int32_t status = check(p, c);
  kiln_entry* f = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
  if (!f) f = choose(p);
  if (!status && !f) status = KILN_UNSUPPORTED_CPU;
  if (!status) {
    const struct kiln_machine machine = {c->pool, c->slow_arena.data};
    struct fp_environment callers;
    fp_enter(&callers, p->flush_subnormals ? KILN_MXCSR | KILN_MXCSR_FLUSH : KILN_MXCSR, p->x87 != 0);
    status = f(c->arguments, c->results, c->arena.data, &machine, c->comm);
    fp_leave(&callers);
  }
  // The other devices shall not wait for this one.
  if (status && p->devices && c->comm && c->comm->fail) c->comm->fail(c->comm->self, c->comm->device, status);
  return status;
}
