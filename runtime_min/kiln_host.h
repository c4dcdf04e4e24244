// Helpers for a host of any model: checks arrays against what a model takes, and holds the memory of its runs. C99,
// C++11.
//
//   kiln_context context;
//   if (kiln_model_problem(model) || kiln_context_create(&context, model, NULL)) ...
//   const int64_t extents[] = {4, 784};
//   kiln_view in[] = {{pixels, KILN_TYPE_F32, 2, extents, NULL}}, out[] = {...};
//   char why[256];
//   int32_t status = kiln_context_run(&context, 0, in, out, why, sizeof why);
//   kiln_context_destroy(&context);
#ifndef KILN_HOST_H_
#define KILN_HOST_H_

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"

// An array of the host's.
typedef struct kiln_view {
  void* data;
  int32_t type;  // a kiln_type
  int32_t rank;
  const int64_t* extents;
  const int64_t* strides;  // in bytes; NULL: row major
} kiln_view;

// The text of an element type ("f32"); "?" for one that this header does not know.
static inline const char* kiln_type_text(int32_t type) {
  switch (type) {
#define KILN_X(name, number, text, bytes) \
  case number:                            \
    return text;
    KILN_ELEMENT_TYPES(KILN_X)
#undef KILN_X
    default:
      return "?";
  }
}

// Why this host cannot run the model; NULL if it can.
static inline const char* kiln_model_problem(const kiln_model* m) {
  if (!m) return "there is no model";
  if (!KILN_HAS(kiln_model, weights, m->struct_bytes)) return "the library's kiln_model is too short";
  if (m->abi_version != KILN_ABI_VERSION) return "the library was made by a kiln with another KILN_ABI_VERSION";
  return NULL;
}

// The model of a shared object by its name (NULL: the first); NULL if it has none.
static inline const kiln_model* kiln_find_model(const kiln_model_list* list, const char* name) {
  uint32_t k;
  for (k = 0; k < list->count; ++k)
    if (!name || strcmp(list->models[k]->name, name) == 0) return list->models[k];
  return NULL;
}

// An entry of a library with several; NULL if there is no such entry.
static inline const kiln_model* kiln_find_entry(const kiln_model_list* list, const char* library, const char* entry) {
  uint32_t k;
  for (k = 0; k < list->count; ++k) {
    const kiln_model* m = list->models[k];
    const char* name = kiln_model_entry(m);
    if (name && strcmp(name, entry) == 0 && strcmp(m->library, library) == 0) return m;
  }
  return NULL;
}

// Writes a reason, cut where there is no room for it, and returns the status.
static inline int32_t kiln_reason(int32_t status, char* why, size_t why_bytes, const char* format, ...) {
  va_list list;
  va_start(list, format);
  if (why_bytes) (void)vsnprintf(why, why_bytes, format, list);
  va_end(list);
  return status;
}

// Whether `v` is the array that `a` describes: type, extents, and elements where the layout has them. KILN_OK, or
// KILN_EXTENT with the reason in `why`. Pointers, alignment and overlaps are the run's to check.
static inline int32_t kiln_check_view(const kiln_array* a, const kiln_view* v, char* why, size_t why_bytes) {
  int64_t stride = a->element_bytes;
  int32_t k;
  if (v->type != a->type)
    return kiln_reason(KILN_EXTENT, why, why_bytes, "%s: elements are %s, not %s", a->name, kiln_type_text(a->type),
                       kiln_type_text(v->type));
  if (v->rank != a->rank)
    return kiln_reason(KILN_EXTENT, why, why_bytes, "%s: has %d dimensions, not %d", a->name, (int)a->rank,
                       (int)v->rank);
  for (k = 0; k < a->rank; ++k)
    if (v->extents[k] != a->extents[k])
      return kiln_reason(KILN_EXTENT, why, why_bytes, "%s: dimension %d is %lld, not %lld", a->name, (int)k,
                         (long long)a->extents[k], (long long)v->extents[k]);
  for (k = a->rank - 1; k >= 0 && a->bytes; --k) {
    const int64_t d = a->minor_to_major ? a->minor_to_major[a->rank - 1 - k] : k;
    int64_t given = stride;
    if (v->strides) {
      given = v->strides[d];
    } else if (a->minor_to_major) {
      int64_t j;
      for (given = a->element_bytes, j = a->rank - 1; j > d; --j) given *= a->extents[j];
    }
    if (a->extents[d] > 1 && given != stride)
      return kiln_reason(KILN_EXTENT, why, why_bytes, "%s: dimension %lld has a stride of %lld bytes, not %lld",
                         a->name, (long long)d, (long long)stride, (long long)given);
    stride *= a->extents[d];
  }
  return KILN_OK;
}

// What one thread needs to run a model.
typedef struct kiln_context {
  const kiln_model* model;
  kiln_arena arena, slow_arena;
  const kiln_pool* pool;  // may be set between runs, as may comm and weights
  const kiln_comm* comm;
  struct kiln_weights* weights;  // where set, the library's weights are these, and their views are ignored
  void* memory;
  void** pointers;  // of arguments, then of results
} kiln_context;

// One block for the arenas, large enough for every batch size. KILN_NULL_POINTER if memory runs out.
static inline int32_t kiln_context_create(kiln_context* c, const kiln_model* m, const kiln_pool* pool) {
  const size_t alignment = m->arena_alignment;
  const size_t arena = ((size_t)m->arena_bytes + alignment - 1) / alignment * alignment;
  const size_t tables = (size_t)(m->arguments + m->results) * sizeof(void*);
  memset(c, 0, sizeof *c);
  c->memory = malloc(alignment + arena + (size_t)m->slow_arena_bytes);
  c->pointers = (void**)malloc(tables + sizeof(void*));
  if (!c->memory || !c->pointers) {
    free(c->memory);
    free(c->pointers);
    c->memory = NULL;
    c->pointers = NULL;
    return KILN_NULL_POINTER;
  }
  c->model = m;
  c->pool = pool;
  c->arena.data = (char*)c->memory + (alignment - (uintptr_t)c->memory % alignment) % alignment;
  c->arena.bytes = arena;
  c->slow_arena.data = (char*)c->arena.data + arena;
  c->slow_arena.bytes = (size_t)m->slow_arena_bytes;
  return KILN_OK;
}

static inline void kiln_context_destroy(kiln_context* c) {
  free(c->memory);
  free(c->pointers);
  memset(c, 0, sizeof *c);
}

// Checks all arrays and runs the model. `batch`: one of its sizes; any, where it has one. The view of a result that
// lives in a donated argument may be all zeros. `why` gets what is wrong, with the array's name where that is known.
static inline int32_t kiln_context_run(kiln_context* c, int64_t batch, const kiln_view* arguments,
                                       const kiln_view* results, char* why, size_t why_bytes) {
  const kiln_model* m = c->model;
  const kiln_variant* v = kiln_variant_of(m, batch);
  void** const result_pointers = c->pointers + m->arguments;
  kiln_call call;
  int32_t status = KILN_OK;
  int64_t k, given = 0;
  if (!m->run) return kiln_reason(KILN_UNSUPPORTED_CPU, why, why_bytes, "%s has no CPU program", m->name);
  if (!v) return kiln_reason(KILN_BATCH_SIZE, why, why_bytes, "%s", m->status_text(KILN_BATCH_SIZE));
  for (k = 0; k < m->arguments && !status; ++k) {
    const kiln_array* a = kiln_argument(m, v, k);
    if (c->weights && a->weight) continue;
    c->pointers[given++] = arguments[k].data;
    status = kiln_check_view(a, &arguments[k], why, why_bytes);
  }
  for (k = 0; k < m->results && !status; ++k) {
    const kiln_array* a = kiln_result(m, v, k);
    result_pointers[k] = a->alias < 0 ? results[k].data : arguments[a->alias].data;
    if (a->alias < 0) status = kiln_check_view(a, &results[k], why, why_bytes);
  }
  if (status) return status;
  call.batch = v->batch;
  call.arguments = c->pointers;
  call.results = result_pointers;
  call.arena = c->arena;
  call.slow_arena = c->slow_arena;
  call.pool = c->pool;
  call.comm = c->comm;
  status = c->weights ? m->weights->run(&call, c->weights) : m->run(&call);
  return kiln_reason(status, why, why_bytes, "%s", m->status_text(status));
}

#endif  // KILN_HOST_H_
