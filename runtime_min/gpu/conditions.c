// Loops and choices that values decide: where a region is recorded, as conditional nodes of its graph, so that the host
// need not wait for the values; else by reading them.
// kiln renames kiln_model_* for each model.
#include <stdlib.h>

#include "runtime_min/gpu/condition.h"
#include "runtime_min/gpu/driver.h"

static int32_t load_condition(struct kiln_model_gpu* g) {
  const struct kiln_gpu_driver* d = g->driver;
  if (g->condition) return 0;
  if (!d->CaptureInfo || !d->CaptureAfter || !d->CaptureInto || !d->HandleCreate || !d->NodeAdd) {
    snprintf(g->error, sizeof g->error,
             "values decide what runs, and this driver makes no graphs of that (CUDA 12.4 does)");
    return KILN_GPU;
  }
  if (!g->condition_module)
    TRY(g, "the kernel of conditions cannot be loaded", d->ModuleLoad(&g->condition_module, kiln_condition_ptx));
  TRY(g, "kiln_condition", d->ModuleFunction(&g->condition, g->condition_module, "kiln_condition"));
  return 0;
}

// Outside of a recording, so that the driver compiles the kernel before one needs it. It is not needed here.
static void warm_condition(struct kiln_model_gpu* g) {
  if (!g->graphs || g->condition || g->condition_tried) return;
  g->condition_tried = 1;
  if (load_condition(g)) g->error[0] = 0;
}

enum { kLoop = 0, kPredicate = 1, kIndex = 2 };

// Recorded: the node of `handle` runs, or runs again, if what lies at `at` then says so.
static int32_t decide(struct kiln_model_gpu* g, uint64_t handle, const void* at, uint32_t kind, uint32_t mine,
                      uint32_t last) {
  void* parameters[] = {&handle, (void*)&at, &kind, &mine, &last};
  TRY(g, "a condition does not start",
      g->driver->Launch(g->condition, 1, 1, 1, 1, 1, 1, 0, g->stream, parameters, NULL));
  return 0;
}

// The graph that is being recorded, and the nodes that a new one must follow.
static int32_t recorded(struct kiln_model_gpu* g, void** graph, void* const** after, size_t* count) {
  int status = 0;
  uint64_t id = 0;
  TRY(g, "a recording cannot be asked", g->driver->CaptureInfo(g->stream, &status, &id, graph, after, count));
  return status == 1 ? 0 : KILN_GPU;
}

static int32_t new_handle(struct kiln_model_gpu* g, uint64_t* handle) {
  enum { kAssignDefault = 1 };
  void* graph = NULL;
  void* const* after = NULL;
  size_t count = 0;
  if (recorded(g, &graph, &after, &count)) return KILN_GPU;
  TRY(g, "no conditional node", g->driver->HandleCreate(handle, graph, g->context, 0, kAssignDefault));
  return 0;
}

// As the driver lays it out (CUgraphNodeParams).
struct conditional_node {
  int32_t node_type, reserved[3];
  uint64_t handle;
  int32_t type;
  uint32_t size;
  void** graphs;
  void* context;
  int64_t rest[25], last;
};
_Static_assert(sizeof(struct conditional_node) == 256, "the driver reads so many bytes");

// Adds a conditional node behind what was recorded so far, and records into its graph until `end_node`. Returns the
// stream that it takes over from.
static int32_t begin_node(struct kiln_model_gpu* g, uint64_t handle, int loop, void** outer) {
  enum { kConditional = 13, kIf = 0, kWhile = 1, kReplace = 1 };
  void *graph = NULL, *node = NULL, *inner = NULL;
  void* const* after = NULL;
  size_t count = 0;
  if (recorded(g, &graph, &after, &count)) return KILN_GPU;
  struct conditional_node p = {
      .node_type = kConditional, .handle = handle, .type = loop ? kWhile : kIf, .size = 1, .context = g->context};
  TRY(g, "no conditional node", g->driver->NodeAdd(&node, graph, after, count, &p));
  g->conditional = 1;
  TRY(g, "no conditional node", g->driver->CaptureAfter(g->stream, &node, 1, kReplace));
  TRY(g, "no stream", g->driver->StreamCreate(&inner, kNonBlocking));
  const int code = g->driver->CaptureInto(inner, p.graphs[0], NULL, NULL, 0, kRelaxed);
  if (code) {
    g->driver->StreamDestroy(inner);
    return failed(g, "a conditional node cannot be recorded", code);
  }
  *outer = g->stream;
  g->stream = inner;
  return 0;
}

static int32_t end_node(struct kiln_model_gpu* g, void* outer, int32_t status) {
  void* graph = NULL;
  const int code = g->driver->CaptureEnd(g->stream, &graph);
  g->driver->StreamDestroy(g->stream);
  g->stream = outer;
  if (status) return status;
  TRY(g, "a conditional node cannot be recorded", code);
  return 0;
}

int32_t kiln_model_gpu_loop(void* self, kiln_gpu_region condition, kiln_gpu_region body, void* const* arguments,
                            void* const* results, void* arena, const void* comm, const void* predicate) {
  struct kiln_model_gpu* g = self;
  int32_t status = condition(arguments, results, arena, &g->table, comm);
  if (!g->recording) {
    warm_condition(g);
    for (;;) {
      uint8_t go = 0;
      if (!status) status = kiln_model_gpu_read(g, &go, predicate, 1);
      if (status || !go) return status;
      status = body(arguments, results, arena, &g->table, comm);
      if (!status) status = condition(arguments, results, arena, &g->table, comm);
    }
  }
  uint64_t handle = 0;
  void* outer = NULL;
  if (!status) status = load_condition(g);
  if (!status) status = new_handle(g, &handle);
  if (!status) status = decide(g, handle, predicate, kLoop, 0, 0);
  if (!status) status = begin_node(g, handle, 1, &outer);
  if (status) return status;
  status = body(arguments, results, arena, &g->table, comm);
  if (!status) status = condition(arguments, results, arena, &g->table, comm);
  if (!status) status = decide(g, handle, predicate, kLoop, 0, 0);
  return end_node(g, outer, status);
}

int32_t kiln_model_gpu_choose(void* self, int64_t count, const kiln_gpu_region* branches, void* const* arguments,
                              void* const* results, void* arena, const void* comm, const void* index,
                              int32_t is_predicate) {
  struct kiln_model_gpu* g = self;
  if (!g->recording) {
    warm_condition(g);
    int32_t at = 0;
    uint8_t first = 0;
    const int32_t status =
        is_predicate ? kiln_model_gpu_read(g, &first, index, 1) : kiln_model_gpu_read(g, &at, index, sizeof at);
    if (status) return status;
    if (is_predicate) at = first ? 0 : (int32_t)count - 1;
    if (at < 0 || at >= count) at = (int32_t)count - 1;
    return branches[at](arguments, results, arena, &g->table, comm);
  }
  uint64_t* handles = calloc((size_t)count, sizeof *handles);
  int32_t status = handles ? load_condition(g) : KILN_GPU;
  // All are decided before any runs: a branch may write where the choice lies.
  for (int64_t k = 0; k < count && !status; ++k) {
    status = new_handle(g, &handles[k]);
    if (!status)
      status = decide(g, handles[k], index, is_predicate ? kPredicate : kIndex, (uint32_t)k, (uint32_t)count - 1);
  }
  for (int64_t k = 0; k < count && !status; ++k) {
    void* outer = NULL;
    status = begin_node(g, handles[k], 0, &outer);
    if (!status) status = end_node(g, outer, branches[k](arguments, results, arena, &g->table, comm));
  }
  free(handles);
  return status;
}
