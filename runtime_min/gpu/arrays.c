// Arrays on the device and copies of them, for programs that use no CUDA interface of their own.
// kiln renames kiln_model_* for each model.
#include <string.h>

#include "runtime_min/gpu/driver.h"

void* kiln_model_gpu_malloc(struct kiln_model_gpu* g, size_t bytes) {
  uint64_t address = 0;
  if (!g || kiln_model_gpu_enter(g, 0)) return NULL;
  const int code = g->driver->Alloc(&address, bytes ? bytes : 1);
  if (code) failed(g, "no memory for an array", code);
  kiln_model_gpu_leave(g, 0, 0);
  return code ? NULL : (void*)address;
}

void kiln_model_gpu_free(struct kiln_model_gpu* g, void* array) {
  if (!g || !array || kiln_model_gpu_enter(g, 0)) return;
  g->driver->Free((uint64_t)array);
  kiln_model_gpu_leave(g, 0, 0);
}

void* kiln_model_gpu_malloc_host(struct kiln_model_gpu* g, size_t bytes) {
  void* memory = NULL;
  if (!g || kiln_model_gpu_enter(g, 0)) return NULL;
  const int code = g->driver->HostAlloc(&memory, bytes ? bytes : 1, 0);
  if (code) failed(g, "no page-locked memory", code);
  kiln_model_gpu_leave(g, 0, 0);
  return code ? NULL : memory;
}

void kiln_model_gpu_free_host(struct kiln_model_gpu* g, void* memory) {
  if (!g || !memory || kiln_model_gpu_enter(g, 0)) return;
  g->driver->HostFree(memory);
  kiln_model_gpu_leave(g, 0, 0);
}

// The driver knows of memory that is page-locked, or its own in any other way; it copies from such memory later.
static int read_later(struct kiln_model_gpu* g, const void* host) {
  enum { kMemoryType = 2 };
  unsigned type = 0;
  return !g->driver->PointerAttribute(&type, kMemoryType, (uint64_t)host);
}

static int32_t copy_in(struct kiln_model_gpu* g, void* array, const void* host, size_t bytes) {
  const int32_t status = kiln_model_gpu_write(g, array, host, (int64_t)bytes);
  return !status && bytes && read_later(g, host) ? kiln_model_gpu_await(g) : status;
}

static int32_t check_copy(struct kiln_model_gpu* g, const void* a, const void* b, size_t bytes) {
  return !g || (bytes && (!a || !b)) ? KILN_NULL_POINTER : 0;
}

int32_t kiln_model_gpu_to_device(struct kiln_model_gpu* g, void* array, const void* host, size_t bytes) {
  int32_t status = check_copy(g, array, host, bytes);
  if (!status) status = kiln_model_gpu_enter(g, 1);
  return status ? status : kiln_model_gpu_leave(g, 1, copy_in(g, array, host, bytes));
}

int32_t kiln_model_gpu_to_host(struct kiln_model_gpu* g, void* host, const void* array, size_t bytes) {
  int32_t status = check_copy(g, array, host, bytes);
  if (!status) status = kiln_model_gpu_enter(g, 1);
  return status ? status : kiln_model_gpu_leave(g, 1, bytes ? kiln_model_gpu_read(g, host, array, (int64_t)bytes) : 0);
}

// The arrays of run_host on the device stay, so that recordings find them where they were. A donated argument and its
// result are one array.
static int32_t stage(struct kiln_model_gpu* g) {
  const struct kiln_gpu_program* p = g->program;
  for (int64_t k = 0; k < p->arguments + p->results; ++k) {
    const int64_t argument = k < p->arguments ? k : p->result_in_argument[k - p->arguments];
    if (g->staged[k]) continue;
    if (k >= p->arguments && argument >= 0) {
      g->staged[k] = g->staged[argument];
      continue;
    }
    const int64_t bytes = k < p->arguments ? p->argument_bytes[k] : p->result_bytes[k - p->arguments];
    if (p->on_host && p->on_host[k]) {
      TRY(g, "no page-locked memory", g->driver->HostAlloc(&g->staged[k], (size_t)(bytes ? bytes : 1), kMapped));
      continue;
    }
    uint64_t address = 0;
    TRY(g, "no memory for an array", g->driver->Alloc(&address, (size_t)(bytes ? bytes : 1)));
    g->staged[k] = (void*)address;
  }
  return 0;
}

// Whether the array of argument or result `k` is page-locked memory of the host, which no run uses by now.
static int staged_on_host(const struct kiln_gpu_program* p, int64_t k) {
  if (k >= p->arguments && p->result_in_argument[k - p->arguments] >= 0) k = p->result_in_argument[k - p->arguments];
  return p->on_host && p->on_host[k];
}

static int32_t bring_in(struct kiln_model_gpu* g, int64_t k, const void* from) {
  const int64_t bytes = g->program->argument_bytes[k];
  if (!staged_on_host(g->program, k)) return kiln_model_gpu_write(g, g->staged[k], from, bytes);
  if (bytes) memcpy(g->staged[k], from, (size_t)bytes);
  return 0;
}

static int32_t bring_out(struct kiln_model_gpu* g, int64_t k, void* to) {
  const int64_t bytes = g->program->result_bytes[k], at = g->program->arguments + k;
  if (!bytes) return 0;
  if (!staged_on_host(g->program, at)) return kiln_model_gpu_read(g, to, g->staged[at], bytes);
  const int32_t status = kiln_model_gpu_await(g);
  if (!status) memcpy(to, g->staged[at], (size_t)bytes);
  return status;
}

static int32_t run_staged(struct kiln_model_gpu* g, const void* const* arguments, void* const* results) {
  const struct kiln_gpu_program* p = g->program;
  if ((!arguments && p->arguments) || (!results && p->results)) return KILN_NULL_POINTER;
  for (int64_t k = 0; k < p->arguments; ++k)
    if (!arguments[k] && p->argument_bytes[k]) return KILN_NULL_POINTER;
  for (int64_t k = 0; k < p->results; ++k)
    if (!results[k] && p->result_bytes[k]) return KILN_NULL_POINTER;
  int32_t status = stage(g);
  for (int64_t k = 0; k < p->arguments && !status; ++k) status = bring_in(g, k, arguments[k]);
  if (!status) status = kiln_model_gpu_start(g, g->staged, g->staged + p->arguments, NULL);
  for (int64_t k = 0; k < p->results && !status; ++k) status = bring_out(g, k, results[k]);
  // Also after a failure: the arrays of the host are the caller's again when this returns.
  const int32_t ended = kiln_model_gpu_await(g);
  return status ? status : ended;
}

int32_t kiln_model_gpu_run_host(struct kiln_model_gpu* g, const void* const* arguments, void* const* results) {
  if (!g) return KILN_NULL_POINTER;
  const int32_t status = kiln_model_gpu_enter(g, 1);
  return status ? status : kiln_model_gpu_leave(g, 1, kiln_model_gpu_tell_others(g, run_staged(g, arguments, results)));
}

// A stream of its own and the event that other work waits for, at the first use.
static int32_t stream_for(struct kiln_model_gpu* g, void** stream, void** event) {
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

int32_t kiln_model_gpu_upload(struct kiln_model_gpu* g, void* array, const void* host, size_t bytes) {
  int32_t status = check_copy(g, array, host, bytes);
  if (!status) status = kiln_model_gpu_enter(g, 0);
  return status ? status : kiln_model_gpu_leave(g, 0, begin_upload(g, array, host, bytes));
}

int32_t kiln_model_gpu_download(struct kiln_model_gpu* g, void* host, const void* array, size_t bytes) {
  int32_t status = check_copy(g, array, host, bytes);
  if (!status) status = kiln_model_gpu_enter(g, 1);
  return status ? status : kiln_model_gpu_leave(g, 1, begin_download(g, host, array, bytes));
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
