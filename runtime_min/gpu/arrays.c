// Arrays on the device and copies of them, for programs that use no CUDA interface of their own.
// Compiled to bitcode; kiln renames kiln_model_* for each model.
#include <stdlib.h>

#include "runtime_min/gpu/driver.h"
#include "runtime_min/gpu/program.h"

extern const struct kiln_gpu_program kiln_model_gpu_program;
int32_t kiln_model_gpu_run(struct kiln_model_gpu* g, void* const* arguments, void* const* results, void* arena);

// NULL if there is no memory.
void* kiln_model_gpu_malloc(struct kiln_model_gpu* g, size_t bytes) {
  uint64_t address = 0;
  void* mine;
  if (g->driver->ContextPush(g->context)) return NULL;
  const int code = g->driver->Alloc(&address, bytes ? bytes : 1);
  if (code) failed(g, "no memory for an array", code);
  g->driver->ContextPop(&mine);
  return (void*)address;
}

void kiln_model_gpu_free(struct kiln_model_gpu* g, void* array) {
  void* mine;
  if (!array || g->driver->ContextPush(g->context)) return;
  g->driver->Free((uint64_t)array);
  g->driver->ContextPop(&mine);
}

// On the stream, behind what was started before; `to_host` waits.
int32_t kiln_model_gpu_to_device(struct kiln_model_gpu* g, void* array, const void* host, size_t bytes) {
  void* mine;
  TRY(g, "no context on the GPU", g->driver->ContextPush(g->context));
  const int32_t status = kiln_model_gpu_write(g, array, host, (int64_t)bytes);
  g->driver->ContextPop(&mine);
  return status;
}

int32_t kiln_model_gpu_to_host(struct kiln_model_gpu* g, void* host, const void* array, size_t bytes) {
  void* mine;
  TRY(g, "no context on the GPU", g->driver->ContextPush(g->context));
  const int32_t status = bytes ? kiln_model_gpu_read(g, host, array, (int64_t)bytes) : 0;
  g->driver->ContextPop(&mine);
  return status;
}

// The same with arrays of the host: copies them in, runs, waits, copies the results out.
int32_t kiln_model_gpu_run_host(struct kiln_model_gpu* g, const void* const* arguments, void* const* results) {
  const struct kiln_gpu_program* p = &kiln_model_gpu_program;
  if (!g || (!arguments && p->arguments) || (!results && p->results)) return KILN_NULL_POINTER;
  TRY(g, "no context on the GPU", g->driver->ContextPush(g->context));
  const int64_t all = p->arguments + p->results;
  void** on_device = calloc((size_t)all + 1, sizeof(void*));
  int32_t status = on_device ? 0 : KILN_GPU;
  // A donated argument and its result are one array.
  for (int64_t k = 0; k < all && !status; ++k) {
    const int64_t argument = k < p->arguments ? k : p->result_in_argument[k - p->arguments];
    if (k >= p->arguments && argument >= 0) {
      on_device[k] = on_device[argument];
      continue;
    }
    const int64_t bytes = k < p->arguments ? p->argument_bytes[k] : p->result_bytes[k - p->arguments];
    uint64_t address = 0;
    int code = g->driver->Alloc(&address, (size_t)(bytes ? bytes : 1));
    if (code) status = failed(g, "no memory for an array", code);
    on_device[k] = (void*)address;
    if (!status && k < p->arguments) status = kiln_model_gpu_write(g, on_device[k], arguments[k], bytes);
  }
  if (!status) status = kiln_model_gpu_run(g, on_device, on_device + p->arguments, NULL);
  for (int64_t k = 0; k < p->results && !status; ++k)
    if (p->result_bytes[k])
      status = kiln_model_gpu_read(g, results[k], on_device[p->arguments + k], p->result_bytes[k]);
  if (!status) {
    const int code = g->driver->StreamWait(g->stream);
    if (code) status = failed(g, "the stream failed", code);
  }
  for (int64_t k = 0; on_device && k < all; ++k)
    if (on_device[k] && (k < p->arguments || p->result_in_argument[k - p->arguments] < 0))
      g->driver->Free((uint64_t)on_device[k]);
  free(on_device);
  void* mine;
  g->driver->ContextPop(&mine);
  return status;
}

// Page-locked: copies from and to it need no help of the host, and go on beside runs.
void* kiln_model_gpu_malloc_host(struct kiln_model_gpu* g, size_t bytes) {
  void *memory = NULL, *mine;
  if (g->driver->ContextPush(g->context)) return NULL;
  const int code = g->driver->HostAlloc(&memory, bytes ? bytes : 1, 0);
  if (code) failed(g, "no page-locked memory", code);
  g->driver->ContextPop(&mine);
  return code ? NULL : memory;
}

void kiln_model_gpu_free_host(struct kiln_model_gpu* g, void* memory) {
  void* mine;
  if (!memory || g->driver->ContextPush(g->context)) return;
  g->driver->HostFree(memory);
  g->driver->ContextPop(&mine);
}

// A stream of its own and the event that other work waits for, at the first use.
static int32_t stream_for(struct kiln_model_gpu* g, void** stream, void** event) {
  enum { kNonBlocking = 1, kNoTiming = 2 };
  if (!*event) TRY(g, "no event", g->driver->EventCreate(event, kNoTiming));
  if (!*stream) TRY(g, "no stream", g->driver->StreamCreate(stream, kNonBlocking));
  return 0;
}

static int32_t begin_upload(struct kiln_model_gpu* g, void* array, const void* host, size_t bytes) {
  const int32_t status = stream_for(g, &g->upload_stream, &g->uploaded);
  if (status) return status;
  if (bytes) TRY(g, "a copy to the device fails", g->driver->ToDevice((uint64_t)array, host, bytes, g->upload_stream));
  TRY(g, "an event fails", g->driver->EventRecord(g->uploaded, g->upload_stream));
  g->uploads_pending = 1;
  return 0;
}

static int32_t begin_download(struct kiln_model_gpu* g, void* host, const void* array, size_t bytes) {
  const int32_t status = stream_for(g, &g->download_stream, &g->computed);
  if (status) return status;
  TRY(g, "an event fails", g->driver->EventRecord(g->computed, g->stream));
  TRY(g, "a stream cannot wait", g->driver->StreamAwait(g->download_stream, g->computed, 0));
  if (bytes) TRY(g, "a copy to the host fails", g->driver->ToHost(host, (uint64_t)array, bytes, g->download_stream));
  return 0;
}

// Beside runs that are under way, which must not use `array`; the next run waits for it.
int32_t kiln_model_gpu_upload(struct kiln_model_gpu* g, void* array, const void* host, size_t bytes) {
  void* mine;
  TRY(g, "no context on the GPU", g->driver->ContextPush(g->context));
  const int32_t status = begin_upload(g, array, host, bytes);
  g->driver->ContextPop(&mine);
  return status;
}

// Behind the runs that were started so far, beside later ones, which must not change `array`.
int32_t kiln_model_gpu_download(struct kiln_model_gpu* g, void* host, const void* array, size_t bytes) {
  void* mine;
  TRY(g, "no context on the GPU", g->driver->ContextPush(g->context));
  const int32_t status = begin_download(g, host, array, bytes);
  g->driver->ContextPop(&mine);
  return status;
}

int32_t kiln_model_gpu_await_uploads(struct kiln_model_gpu* g) {
  if (!g->uploads_pending) return 0;
  g->uploads_pending = 0;
  TRY(g, "a stream cannot wait", g->driver->StreamAwait(g->stream, g->uploaded, 0));
  return 0;
}

int32_t kiln_model_gpu_await_copies(struct kiln_model_gpu* g) {
  if (g->upload_stream) TRY(g, "uploads failed", g->driver->StreamWait(g->upload_stream));
  if (g->download_stream) TRY(g, "downloads failed", g->driver->StreamWait(g->download_stream));
  return 0;
}

void kiln_model_gpu_end_copies(struct kiln_model_gpu* g) {
  void* const streams[] = {g->upload_stream, g->download_stream};
  void* const events[] = {g->uploaded, g->computed};
  for (int k = 0; k < 2; ++k) {
    if (streams[k]) {
      g->driver->StreamWait(streams[k]);
      g->driver->StreamDestroy(streams[k]);
    }
    if (events[k]) g->driver->EventDestroy(events[k]);
  }
}
