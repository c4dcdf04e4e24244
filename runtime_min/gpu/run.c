// <model>_gpu_run, and what the program says of itself.
// kiln renames kiln_model_* for each model.
#include <string.h>

#include "runtime_min/gpu/driver.h"

// A kernel that reads at an address of another alignment ends the context, for everybody who shares it.
static int32_t check(struct kiln_model_gpu* g, const char* what, int64_t k, const void* at, int64_t bytes,
                     int alignment) {
  if (bytes && !at) {
    snprintf(g->error, sizeof g->error, "%s %lld is a null pointer", what, (long long)k);
    return KILN_NULL_POINTER;
  }
  if ((uintptr_t)at % (uintptr_t)alignment == 0) return 0;
  snprintf(g->error, sizeof g->error, "%s %lld lies at %p, which is no multiple of %d", what, (long long)k, at,
           alignment);
  return KILN_MISALIGNED;
}

static int32_t check_all(struct kiln_model_gpu* g, void* const* arguments, void* const* results, void* arena) {
  const struct kiln_gpu_program* p = g->program;
  if ((!arguments && p->arguments) || (!results && p->results)) {
    snprintf(g->error, sizeof g->error, "the table of %s is a null pointer", arguments ? "results" : "arguments");
    return KILN_NULL_POINTER;
  }
  int32_t status = 0;
  for (int64_t k = 0; k < p->arguments && !status; ++k)
    status = check(g, "argument", k, arguments[k], p->argument_bytes[k], kAddressAlignment);
  for (int64_t k = 0; k < p->results && !status; ++k)
    status = check(g, "result", k, results[k], p->result_bytes[k], kAddressAlignment);
  return status ? status : check(g, "the arena,", 0, arena, 0, kArenaAlignment);
}

static int32_t start(struct kiln_model_gpu* g, void* const* arguments, void* const* results, void* arena) {
  const struct kiln_gpu_program* p = g->program;
  int32_t status = check_all(g, arguments, results, arena);
  if (status) return status;
  if (p->communication && !g->comm) {
    snprintf(g->error, sizeof g->error, "the program communicates and was not told how (_gpu_set_comm)");
    return KILN_COMMUNICATION;
  }
  // The caller may be recording a graph of its own: then the run becomes a part of that.
  int recorded = 0, mode = kRelaxed;
  if (!g->own_stream) TRY(g, "the stream cannot be asked", g->driver->StreamCapturing(g->stream, &recorded));
  if (p->communication && p->communication->groups && !g->collectives) {
    if (recorded) {
      snprintf(g->error, sizeof g->error, "the devices are not connected yet: run once before a recording");
      return KILN_COMMUNICATION;
    }
    status = p->communication->collectives()->connect(g);
    if (status) return status;
  }
  if (recorded) TRY(g, "the recording cannot be joined", g->driver->CaptureMode(&mode));
  // An upload is no part of the caller's recording, so that only the host can wait for it.
  if (recorded && g->uploads_pending) {
    const int code = g->driver->StreamWait(g->upload_stream);
    if (code) status = failed(g, "uploads failed", code);
    g->uploads_pending = 0;
  }
  if (!status) status = kiln_model_gpu_await_uploads(g);
  if (!status && !arena && p->arena_bytes) {
    if (!g->arena) status = g->driver->Alloc(&g->arena, (size_t)p->arena_bytes);
    if (status) status = failed(g, "no memory for the arena", status);
    arena = (void*)g->arena;
  }
  g->recording = recorded != 0;
  if (!status) status = p->entry(arguments, results, arena, &g->table, g->comm);
  g->recording = 0;
  if (recorded) g->driver->CaptureMode(&mode);
  return status;
}

// The other devices shall not wait for this one.
int32_t kiln_model_gpu_tell_others(struct kiln_model_gpu* g, int32_t status) {
  const struct kiln_comm* c = g->comm;
  if (status && g->collectives) g->collectives->fail(g);
  if (status && c && c->fail) c->fail(c->self, c->device, status);
  return status;
}

int32_t kiln_model_gpu_start(struct kiln_model_gpu* g, void* const* arguments, void* const* results, void* arena) {
  return kiln_model_gpu_tell_others(g, start(g, arguments, results, arena));
}

int32_t kiln_model_gpu_run(struct kiln_model_gpu* g, void* const* arguments, void* const* results, void* arena) {
  if (!g) return KILN_NULL_POINTER;
  const int32_t status = kiln_model_gpu_enter(g, 1);
  return status ? status : kiln_model_gpu_leave(g, 1, kiln_model_gpu_start(g, arguments, results, arena));
}

int32_t kiln_model_gpu_wait(struct kiln_model_gpu* g) {
  if (!g) return KILN_NULL_POINTER;
  int32_t status = kiln_model_gpu_enter(g, 0);
  if (status) return status;
  status = kiln_model_gpu_await(g);
  status = kiln_model_gpu_tell_others(g, status ? status : kiln_model_gpu_await_copies(g));
  return kiln_model_gpu_leave(g, 0, status);
}

void kiln_model_gpu_set_comm(struct kiln_model_gpu* g, const struct kiln_comm* comm) {
  if (!g) return;
  if (g->collectives && !kiln_model_gpu_enter(g, 0)) {
    kiln_model_gpu_forget_recordings(g);
    g->collectives->disconnect(g, 1);
    kiln_model_gpu_leave(g, 0, 0);
  }
  g->comm = comm;
}

void kiln_model_gpu_set_graphs(struct kiln_model_gpu* g, int32_t on) { g->graphs = on != 0; }

const char* kiln_model_gpu_error(const struct kiln_model_gpu* g) { return g->error; }

const char* kiln_model_gpu_image(const struct kiln_model_gpu* g) { return g->program->image[g->residence->image].name; }

void kiln_model_gpu_describe(struct kiln_model_gpu* g, char* name, size_t name_bytes, char* versions,
                             size_t versions_bytes) {
  int driver_version = 0;
  name[0] = 0;
  g->driver->DeviceGetName(name, (int)name_bytes, g->device);
  g->driver->DriverGetVersion(&driver_version);
  const int n = snprintf(versions, versions_bytes, "driver %d", driver_version);
  if (g->gemm_state && n > 0 && (size_t)n < versions_bytes)
    snprintf(versions + n, versions_bytes - (size_t)n, ", cublasLt %lld", (long long)g->gemm->version());
}

int64_t kiln_model_gpu_algorithm(struct kiln_model_gpu* g, const struct kiln_gpu_call* call, uint64_t* words) {
  return g->gemm_state && !g->gemm->algorithm(g->gemm_state, call, words) ? g->gemm->version() : 0;
}

// `format` with one number and one text.
static void say(struct kiln_model_gpu* g, const char* format, long long number, const char* text) {
  const size_t n = strlen(g->report);
  snprintf(g->report + n, sizeof g->report - n, format, number, text);
}

const char* kiln_model_gpu_report(struct kiln_model_gpu* g) {
  const struct kiln_gpu_program* p = g->program;
  pthread_mutex_lock(&g->turn);
  snprintf(g->report, sizeof g->report, "image: %s", kiln_model_gpu_image(g));
  if (g->residence->images_refused[0]) say(g, "%.0lld (refused: %s)", 0, g->residence->images_refused);
  if (g->gemm_state) say(g, "\nproducts: %lld by cuBLASLt%s", (long long)(p->calls - g->own_products), "");
  if (g->own_products) {
    say(g, g->gemm_state ? ", %lld by kiln's own kernels%s" : "\nproducts: %lld by kiln's own kernels%s",
        (long long)g->own_products, "");
    say(g, "%.0lld (%s)", 0, g->library_missing);
  }
  long long recorded = 0, direct = 0;
  const char* why = NULL;
  for (int64_t k = 0; k < p->regions; ++k) {
    const struct region* r = &g->regions[k];
    const int given_up = r->failures >= kTries;
    direct += given_up;
    if (given_up) why = r->why;
    for (int i = 0; i < kRecordings; ++i)
      if (r->recording[i].exec) {
        ++recorded;
        break;
      }
  }
  if (p->regions) say(g, "\nregions: %lld recorded%s", recorded, "");
  if (direct) say(g, ", %lld never (%s)", direct, why);
  if (g->collectives) {
    char text[512];
    g->collectives->describe(g, text, sizeof text);
    say(g, "\n%.0lld%s", 0, text);
  }
  pthread_mutex_unlock(&g->turn);
  return g->report;
}
