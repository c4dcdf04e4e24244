// What a program does over and over, as graphs: regions of its entry are recorded once and replayed, with loops and
// choices that depend on values as conditional nodes, so that the host need not wait for these.
// Compiled to bitcode; kiln renames kiln_model_* for each model.
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/condition.h"
#include "runtime_min/gpu/driver.h"
#include "runtime_min/gpu/program.h"

extern const struct kiln_gpu_program kiln_model_gpu_program;

enum { kRelaxed = 2 };  // capture mode

// What cannot be recorded is run as it is, now and from then on.
static int32_t run_directly(struct kiln_model_gpu* g, struct recording* r, kiln_gpu_region region,
                            void* const* arguments, void* const* results, void* arena, const void* comm) {
  r->direct = 1;
  return region(arguments, results, arena, &g->table, comm);
}

// Records the region as a graph the first time; later runs replay it, with the new addresses if there are any.
int32_t kiln_model_gpu_record(void* self, int64_t number, kiln_gpu_region region, void* const* arguments,
                              void* const* results, void* arena, const void* comm) {
  struct kiln_model_gpu* g = self;
  struct recording* r = &g->recordings[number];
  if (!g->graphs || r->direct) return region(arguments, results, arena, &g->table, comm);
  const int64_t na = kiln_model_gpu_program.arguments, nr = kiln_model_gpu_program.results;
  const size_t all = (size_t)(na + nr + 1) * sizeof(void*);
  int same = r->exec != NULL && r->addresses[na + nr] == arena &&
             !memcmp(r->addresses, arguments, (size_t)na * sizeof(void*)) &&
             !memcmp(r->addresses + na, results, (size_t)nr * sizeof(void*));
  if (!same) {
    void* graph = NULL;
    if (!r->addresses) r->addresses = malloc(all);
    if (!r->addresses) return KILN_GPU;
    TRY(g, "recording does not start", g->driver->CaptureBegin(g->stream, kRelaxed));
    g->recording = 1;
    const int32_t status = region(arguments, results, arena, &g->table, comm);
    g->recording = 0;
    int code = g->driver->CaptureEnd(g->stream, &graph);
    if (status || code || !graph) {
      if (graph) g->driver->GraphFree(graph);
      return run_directly(g, r, region, arguments, results, arena, comm);
    }
    char info[64];  // of a failed update; what it says is not needed
    if (r->exec && g->driver->GraphUpdate(r->exec, graph, info)) {
      g->driver->GraphExecFree(r->exec);
      r->exec = NULL;
    }
    code = r->exec ? 0 : g->driver->GraphBuild(&r->exec, graph, 0);
    g->driver->GraphFree(graph);
    if (code) {
      r->exec = NULL;
      return run_directly(g, r, region, arguments, results, arena, comm);
    }
    memcpy(r->addresses, arguments, (size_t)na * sizeof(void*));
    memcpy(r->addresses + na, results, (size_t)nr * sizeof(void*));
    r->addresses[na + nr] = arena;
  }
  TRY(g, "a graph does not start", g->driver->GraphLaunch(r->exec, g->stream));
  return 0;
}

void kiln_model_gpu_forget(struct kiln_model_gpu* g) {
  for (int64_t k = 0; g->recordings && k < kiln_model_gpu_program.regions; ++k) {
    if (g->recordings[k].exec) g->driver->GraphExecFree(g->recordings[k].exec);
    free(g->recordings[k].addresses);
  }
  if (g->condition_module) g->driver->ModuleUnload(g->condition_module);
  free(g->recordings);
}

static int32_t load_condition(struct kiln_model_gpu* g) {
  const struct kiln_gpu_driver* d = g->driver;
  if (g->condition) return 0;
  if (!d->CaptureInfo || !d->CaptureAfter || !d->CaptureInto || !d->HandleCreate || !d->NodeAdd) return KILN_GPU;
  if (!g->condition_module)
    TRY(g, "the kernel of conditions cannot be loaded", d->ModuleLoad(&g->condition_module, kiln_condition_ptx));
  TRY(g, "kiln_condition", d->ModuleFunction(&g->condition, g->condition_module, "kiln_condition"));
  return 0;
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
  enum { kConditional = 13, kIf = 0, kWhile = 1, kReplace = 1, kNonBlocking = 1 };
  void *graph = NULL, *node = NULL, *inner = NULL;
  void* const* after = NULL;
  size_t count = 0;
  if (recorded(g, &graph, &after, &count)) return KILN_GPU;
  struct conditional_node p = {
      .node_type = kConditional, .handle = handle, .type = loop ? kWhile : kIf, .size = 1, .context = g->context};
  TRY(g, "no conditional node", g->driver->NodeAdd(&node, graph, after, count, &p));
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
