// Whose turn it is with a program: one thread at a time has it and its context. Where the program works for CUDA's
// default stream, whose order other code relies on, its own stream follows that one and that one follows it.
// kiln renames kiln_model_* for each model.
#include "runtime_min/gpu/driver.h"

static int32_t follow(struct kiln_model_gpu* g, void** event, void* first, void* second) {
  if (!*event) TRY(g, "no event", g->driver->EventCreate(event, kNoTiming));
  TRY(g, "an event fails", g->driver->EventRecord(*event, first));
  TRY(g, "a stream cannot wait", g->driver->StreamAwait(second, *event, 0));
  return 0;
}

int32_t kiln_model_gpu_enter(struct kiln_model_gpu* g, int ordered) {
  pthread_mutex_lock(&g->turn);
  const int code = g->driver->ContextPush(g->context);
  if (code) {
    const int32_t status = failed(g, "no context on the GPU", code);
    pthread_mutex_unlock(&g->turn);
    return status;
  }
  const int32_t status = ordered && g->follows_default ? follow(g, &g->default_reached, NULL, g->stream) : 0;
  return status ? kiln_model_gpu_leave(g, 0, status) : 0;
}

int32_t kiln_model_gpu_leave(struct kiln_model_gpu* g, int ordered, int32_t status) {
  if (ordered && g->follows_default) {
    const int32_t behind = follow(g, &g->own_reached, g->stream, NULL);
    if (!status) status = behind;
  }
  void* mine;
  g->driver->ContextPop(&mine);
  pthread_mutex_unlock(&g->turn);
  return status;
}
