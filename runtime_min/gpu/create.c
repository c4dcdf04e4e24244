// A program on a device: a context, a stream, its code, its libraries and its weights.
// kiln renames kiln_model_* for each model.
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/driver.h"

// What people can do about it.
static const char* advice(int code) {
  switch (code) {
    case 34:
      return "libcuda.so.1 is the toolkit's stub: take its directory from the loader's path";
    case 100:
      return "it finds no GPU";
    case 802:
      return "the system is not ready: nvidia-fabricmanager does not run, or has not finished";
    case 803:
      return "libcuda.so.1 and the kernel module are of different versions: restart after an update of the driver";
    case 804:
      return "CUDA's compatibility package does not serve this GPU: take its directory from LD_LIBRARY_PATH";
    case 999:
      return "the kernel module is not loaded, or /dev/nvidia* cannot be opened (a container needs its GPUs named)";
    default:
      return "see nvidia-smi";
  }
}

static int32_t find_device(struct kiln_model_gpu* g, int device) {
  int count = 0;
  int code = g->driver->Init(0);
  if (!code) code = g->driver->DeviceGetCount(&count);
  if (!code && count == 0) code = 100;
  if (code) {
    failed(g, "the NVIDIA driver does not start", code);
    const size_t n = strlen(g->error);
    snprintf(g->error + n, sizeof g->error - n, ": %s", advice(code));
    return KILN_NO_DEVICE;
  }
  if (device < 0 || device >= count) {
    snprintf(g->error, sizeof g->error, "there is no GPU %d: the machine has %d", device, count);
    return KILN_NO_DEVICE;
  }
  TRY(g, "the GPU cannot be used", g->driver->DeviceGet(&g->device, device));
  return 0;
}

// NULL and CU_STREAM_LEGACY are CUDA's default stream, which cannot be recorded.
static int32_t take_stream(struct kiln_model_gpu* g, void* stream) {
  void* const kLegacy = (void*)(intptr_t)1;
  g->follows_default = !stream || stream == kLegacy;
  g->stream = stream;
  if (stream != KILN_GPU_OWN_STREAM && !g->follows_default) return 0;
  g->stream = NULL;
  TRY(g, "no stream", g->driver->StreamCreate(&g->stream, kNonBlocking));
  g->own_stream = 1;
  return 0;
}

static int32_t set_up(struct kiln_model_gpu* g, int device, void* stream) {
  const struct kiln_gpu_program* p = g->program;
  g->functions = calloc((size_t)p->kernels + 1, sizeof(void*));
  g->regions = calloc((size_t)p->regions + 1, sizeof(struct region));
  g->staged = calloc((size_t)(p->arguments + p->results) + 1, sizeof(void*));
  if (!g->functions || !g->regions || !g->staged) {
    snprintf(g->error, sizeof g->error, "no memory");
    return KILN_GPU;
  }
  int32_t status = take_stream(g, stream);
  if (!status) status = kiln_model_gpu_settle(g, device);
  for (int64_t k = 0; k < p->kernels && !status; ++k)
    TRY(g, p->kernel[k], g->driver->ModuleFunction(&g->functions[k], g->residence->module, p->kernel[k]));
  if (!status) status = kiln_model_gpu_open_products(g);
  if (!status && p->communication && p->communication->exchange_bytes) {
    void* exchange = NULL;
    TRY(g, "no page-locked memory", g->driver->HostAlloc(&exchange, (size_t)p->communication->exchange_bytes, 0));
    g->exchange = exchange;
  }
  if (!status && p->host_arena_bytes)
    TRY(g, "no page-locked memory", g->driver->HostAlloc(&g->host_arena, (size_t)p->host_arena_bytes, kMapped));
  return status;
}

static int32_t enter_and_set_up(struct kiln_model_gpu* g, int device, void* stream) {
  void* context = NULL;
  int32_t status = find_device(g, device);
  if (status) return status;
  TRY(g, "no context on the GPU", g->driver->ContextRetain(&context, g->device));
  g->context = context;
  status = kiln_model_gpu_enter(g, 0);
  return status ? status : kiln_model_gpu_leave(g, 0, set_up(g, device, stream));
}

int32_t kiln_library_gpu_open(struct kiln_model_gpu** out, const struct kiln_gpu_program* program, int32_t device,
                              void* stream, char* error, size_t error_bytes) {
  if (!out) return KILN_NULL_POINTER;
  *out = NULL;
  struct kiln_model_gpu* g = calloc(1, sizeof *g);
  if (!g) {
    if (error && error_bytes) snprintf(error, error_bytes, "no memory");
    return KILN_GPU;
  }
  g->program = program;
  pthread_mutex_init(&g->turn, NULL);
  g->graphs = 1;
  const char* problem = kiln_model_gpu_driver(&g->driver);
  int32_t status = KILN_NO_DEVICE;
  if (problem)
    snprintf(g->error, sizeof g->error, "%s", problem);
  else
    status = enter_and_set_up(g, device, stream);
  if (status) {
    if (error && error_bytes) snprintf(error, error_bytes, "%s", g->error);
    kiln_model_gpu_destroy(g);
    return status;
  }
  kiln_model_gpu_fill_table(g);
  *out = g;
  return 0;
}

static void release(struct kiln_model_gpu* g) {
  const struct kiln_gpu_driver* d = g->driver;
  const struct kiln_gpu_program* p = g->program;
  if (g->stream) kiln_model_gpu_await(g);
  kiln_model_gpu_end_copies(g);
  kiln_model_gpu_forget(g);
  // Behind the graphs that hold its calls.
  if (g->collectives) g->collectives->disconnect(g, 1);
  for (int64_t k = 0; g->staged && k < p->arguments + p->results; ++k)
    if (g->staged[k] && (k < p->arguments || p->result_in_argument[k - p->arguments] < 0)) {
      if (p->on_host && p->on_host[k])
        d->HostFree(g->staged[k]);
      else
        d->Free((uint64_t)g->staged[k]);
    }
  if (g->gemm_state) g->gemm->close(g->gemm_state);
  const uint64_t blocks[] = {g->arena, g->workspace};
  for (int k = 0; k < 2; ++k)
    if (blocks[k]) d->Free(blocks[k]);
  if (g->exchange) d->HostFree(g->exchange);
  if (g->host_arena) d->HostFree(g->host_arena);
  kiln_model_gpu_move_out(g, 1);
  void* const events[] = {g->default_reached, g->own_reached};
  for (int k = 0; k < 2; ++k)
    if (events[k]) d->EventDestroy(events[k]);
  if (g->own_stream) d->StreamDestroy(g->stream);
}

void kiln_model_gpu_destroy(struct kiln_model_gpu* g) {
  if (!g) return;
  if (g->context) {
    // Without its context nothing can be freed; it all goes with the context.
    if (!kiln_model_gpu_enter(g, 0)) {
      release(g);
      kiln_model_gpu_leave(g, 0, 0);
    } else {
      if (g->collectives) g->collectives->disconnect(g, 0);
      kiln_model_gpu_move_out(g, 0);
      free(g->regions);
    }
    g->driver->ContextRelease(g->device);
  }
  pthread_mutex_destroy(&g->turn);
  free(g->functions);
  free(g->staged);
  free(g->gemm_refused);
  free(g);
}
