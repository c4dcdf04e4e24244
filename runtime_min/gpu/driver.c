// The table of functions that a GPU entry asks (abi.h), by the CUDA driver, which is opened when the first program is
// created: a binary starts on a machine without one.
// kiln renames kiln_model_* for each model.
#include "runtime_min/gpu/driver.h"

#include <dlfcn.h>

static struct kiln_gpu_driver driver;
static const char* driver_problem;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void open_driver(void) {
  void* lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    driver_problem = "there is no NVIDIA driver (libcuda.so.1 cannot be opened)";
    return;
  }
#define F(name, symbol, parameters)            \
  *(void**)&driver.name = dlsym(lib, #symbol); \
  if (!driver.name) driver_problem = "the NVIDIA driver is too old: it lacks " #symbol;
  DRIVER(F)
#undef F
#define F(name, symbol, parameters) *(void**)&driver.name = dlsym(lib, #symbol);
  CONDITIONAL(F)
#undef F
}

const char* kiln_model_gpu_driver(const struct kiln_gpu_driver** out) {
  pthread_once(&driver_once, open_driver);
  *out = &driver;
  return driver_problem;
}

static int32_t launch(void* self, const struct kiln_gpu_launch* what, void* const* buffers) {
  struct kiln_model_gpu* g = self;
  void* parameters[KILN_GPU_MOST_BUFFERS];
  for (int64_t k = 0; k < what->buffers; ++k) parameters[k] = (void*)&buffers[k];
  const int64_t blocks = what->grid[2 * g->residence->image], threads = what->grid[2 * g->residence->image + 1];
  if (blocks == 0) return 0;
  TRY(g, "a kernel does not start",
      g->driver->Launch(g->functions[what->kernel], (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, g->stream,
                        parameters, NULL));
  return 0;
}

static int32_t copy(void* self, void* to, const void* from, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  const struct kiln_gpu_program* p = g->program;
  int (*const move)(uint64_t, uint64_t, size_t, void*) =
      p->host_arena_bytes || p->on_host ? g->driver->CopyAny : g->driver->Copy;
  if (bytes) TRY(g, "a copy fails", move((uint64_t)to, (uint64_t)from, (size_t)bytes, g->stream));
  return 0;
}

static int32_t fill(void* self, void* to, int32_t byte, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  if (bytes) TRY(g, "a fill fails", g->driver->Fill((uint64_t)to, (unsigned char)byte, (size_t)bytes, g->stream));
  return 0;
}

int32_t kiln_model_gpu_await(struct kiln_model_gpu* g) {
  if (g->collectives) return g->collectives->wait(g);
  TRY(g, "the stream failed", g->driver->StreamWait(g->stream));
  return 0;
}

// The driver would record a copy and then fail at waiting, which spoils the whole recording.
int32_t kiln_model_gpu_refuse_in_recording(struct kiln_model_gpu* g) {
  snprintf(g->error, sizeof g->error, "the program exchanges values with the host, which a CUDA graph cannot");
  return KILN_GPU;
}

int32_t kiln_model_gpu_read(void* self, void* host, const void* device, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  if (g->recording) return kiln_model_gpu_refuse_in_recording(g);
  // A copy to pageable memory waits in the driver, where no limit of time ends it.
  const int32_t status = g->collectives ? kiln_model_gpu_await(g) : 0;
  if (status) return status;
  if (bytes) TRY(g, "a copy to the host fails", g->driver->ToHost(host, (uint64_t)device, (size_t)bytes, g->stream));
  return kiln_model_gpu_await(g);
}

int32_t kiln_model_gpu_write(void* self, void* device, const void* host, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  if (g->recording) return kiln_model_gpu_refuse_in_recording(g);
  if (bytes)
    TRY(g, "a copy to the device fails", g->driver->ToDevice((uint64_t)device, host, (size_t)bytes, g->stream));
  return 0;
}

static int32_t call(void* self, const struct kiln_gpu_call* what, void* const* buffers) {
  struct kiln_model_gpu* g = self;
  if (what->routine == KILN_GPU_GEMM && g->gemm) return kiln_model_gpu_product(g, what, buffers);
  snprintf(g->error, sizeof g->error, "the library was built without routine %d", (int)what->routine);
  return KILN_GPU;
}

void kiln_model_gpu_fill_table(struct kiln_model_gpu* g) {
  g->table = (struct kiln_gpu){g,
                               (void*)g->residence->weights,
                               launch,
                               call,
                               copy,
                               fill,
                               kiln_model_gpu_read,
                               kiln_model_gpu_write,
                               kiln_model_gpu_record,
                               kiln_model_gpu_loop,
                               kiln_model_gpu_choose};
  g->table.host_arena = g->host_arena;
  if (g->program->communication) g->program->communication->by_host(&g->table);
}
