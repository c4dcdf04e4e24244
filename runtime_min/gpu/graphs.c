// What a program does over and over, as graphs: a region of its entry runs once as it is, is recorded the next time and
// replayed from then on.
// kiln renames kiln_model_* for each model.
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/driver.h"

// What a region reads and writes, as a recording keeps it.
struct addresses {
  const struct kiln_gpu_program* program;
  void* const* arguments;
  void* const* results;
  void* arena;
};

static int same(const struct recording* r, const struct addresses* at) {
  const size_t na = (size_t)at->program->arguments, nr = (size_t)at->program->results;
  return r->exec && r->addresses[na + nr] == at->arena && !memcmp(r->addresses, at->arguments, na * sizeof(void*)) &&
         !memcmp(r->addresses + na, at->results, nr * sizeof(void*));
}

static int keep_addresses(struct recording* r, const struct addresses* at) {
  const size_t na = (size_t)at->program->arguments, nr = (size_t)at->program->results;
  if (!r->addresses) r->addresses = malloc((na + nr + 1) * sizeof(void*));
  if (!r->addresses) return 0;
  if (na) memcpy(r->addresses, at->arguments, na * sizeof(void*));
  if (nr) memcpy(r->addresses + na, at->results, nr * sizeof(void*));
  r->addresses[na + nr] = at->arena;
  return 1;
}

// The recording with these addresses, or the one to be made anew: a free one, else that which was not used for longest.
static struct recording* find(struct region* region, const struct addresses* at) {
  struct recording* oldest = &region->recording[0];
  for (int k = 0; k < kRecordings; ++k) {
    struct recording* r = &region->recording[k];
    if (same(r, at)) return r;
    if (oldest->exec && (!r->exec || r->used < oldest->used)) oldest = r;
  }
  return oldest;
}

// Makes `r` a graph of what was recorded. An update would not give new handles to nodes that values decide.
static int build(struct kiln_model_gpu* g, struct recording* r, void* graph) {
  char info[64];  // of a failed update; what it says is not needed
  const int updates = r->exec && !r->conditional && !g->conditional && !g->driver->GraphUpdate(r->exec, graph, info);
  if (updates) return 0;
  if (r->exec) g->driver->GraphExecFree(r->exec);
  r->exec = NULL;
  r->conditional = g->conditional;
  const int code = g->driver->GraphBuild(&r->exec, graph, 0);
  if (code) r->exec = NULL;
  return code;
}

// Not 0: the region cannot be recorded, and nothing of it was started; `g->error` says why.
static int32_t make(struct kiln_model_gpu* g, struct recording* r, kiln_gpu_region region, const struct addresses* at,
                    const void* comm) {
  void* graph = NULL;
  TRY(g, "recording does not start", g->driver->CaptureBegin(g->stream, kRelaxed));
  g->recording = 1;
  g->conditional = 0;
  const int32_t status = region(at->arguments, at->results, at->arena, &g->table, comm);
  g->recording = 0;
  int code = g->driver->CaptureEnd(g->stream, &graph);
  if (!status && !code && graph) {
    code = build(g, r, graph);
    if (code) failed(g, "a graph cannot be made", code);
  } else if (!status) {
    failed(g, "recording does not end", code);
  }
  if (graph) g->driver->GraphFree(graph);
  if (status || code || !graph) return KILN_GPU;
  return keep_addresses(r, at) ? 0 : KILN_GPU;
}

int32_t kiln_model_gpu_record(void* self, int64_t number, kiln_gpu_region code, void* const* arguments,
                              void* const* results, void* arena, const void* comm) {
  struct kiln_model_gpu* g = self;
  struct region* region = &g->regions[number];
  const struct addresses at = {g->program, arguments, results, arena};
  // Within a recording, the caller's or another region's, this becomes a part of it.
  const int direct = !g->graphs || g->recording || region->failures >= kTries;
  // The first run loads what libraries and the driver load lazily, which a recording must not.
  if (direct || !region->warm) {
    region->warm = 1;
    return code(arguments, results, arena, &g->table, comm);
  }
  struct recording* r = find(region, &at);
  if (!same(r, &at) && make(g, r, code, &at, comm)) {
    ++region->failures;
    snprintf(region->why, sizeof region->why, "%.127s", g->error);
    g->error[0] = 0;
    return code(arguments, results, arena, &g->table, comm);
  }
  r->used = ++g->clock;
  TRY(g, "a graph does not start", g->driver->GraphLaunch(r->exec, g->stream));
  if (g->collectives) g->collectives->replayed(g);
  return 0;
}

void kiln_model_gpu_forget_recordings(struct kiln_model_gpu* g) {
  for (int64_t k = 0; g->regions && k < g->program->regions; ++k)
    for (int i = 0; i < kRecordings; ++i) {
      struct recording* r = &g->regions[k].recording[i];
      if (r->exec) g->driver->GraphExecFree(r->exec);
      free(r->addresses);
      *r = (struct recording){0};
    }
}

void kiln_model_gpu_forget(struct kiln_model_gpu* g) {
  kiln_model_gpu_forget_recordings(g);
  if (g->condition_module) g->driver->ModuleUnload(g->condition_module);
  free(g->regions);
}
