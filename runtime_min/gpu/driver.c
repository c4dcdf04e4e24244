// <model>_gpu_*: loads the library's GPU program through the CUDA driver and runs it on a stream.
// Compiled to bitcode; kiln renames kiln_model_* for each model. The driver is opened when the first program is
// created: a binary starts on a machine without one, and is told so.
#include "runtime_min/gpu/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_min/abi.h"
#include "runtime_min/gpu/abi.h"
#include "runtime_min/gpu/program.h"

int32_t kiln_model_gpu_entry(void* const* arguments, void* const* results, void* arena, const void* gpu,
                             const void* comm);
extern const struct kiln_gpu_program kiln_model_gpu_program;
// Of cublas.c, in libraries with products.
__attribute__((weak)) int32_t kiln_model_gpu_gemm_open(void** state, char* error, size_t error_bytes);
__attribute__((weak)) void kiln_model_gpu_gemm_close(void* state);
__attribute__((weak)) int32_t kiln_model_gpu_gemm(void* state, const struct kiln_gpu_call* call, int64_t algorithm,
                                                  void* const* buffers, void* workspace, size_t workspace_bytes,
                                                  void* stream, char* error, size_t error_bytes);
__attribute__((weak)) int64_t kiln_model_gpu_gemm_version(void);
__attribute__((weak)) extern const char kiln_model_weights[];

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

static int32_t launch(void* self, const struct kiln_gpu_launch* what, void* const* buffers) {
  struct kiln_model_gpu* g = self;
  void* parameters[KILN_GPU_MOST_BUFFERS + 1];
  for (int64_t k = 0; k < what->buffers; ++k) parameters[k] = (void*)&buffers[k];
  int64_t number = what->number;
  parameters[what->buffers] = &number;
  const int64_t blocks = what->grid[2 * g->image], threads = what->grid[2 * g->image + 1];
  if (blocks == 0) return 0;
  TRY(g, "a kernel does not start",
      g->driver->Launch(g->functions[what->kernel], (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, g->stream,
                        parameters, NULL));
  return 0;
}

static int32_t copy(void* self, void* to, const void* from, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  if (bytes) TRY(g, "a copy fails", g->driver->Copy((uint64_t)to, (uint64_t)from, (size_t)bytes, g->stream));
  return 0;
}

static int32_t fill(void* self, void* to, int32_t byte, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  if (bytes) TRY(g, "a fill fails", g->driver->Fill((uint64_t)to, (unsigned char)byte, (size_t)bytes, g->stream));
  return 0;
}

static int32_t wait(void* self) {
  struct kiln_model_gpu* g = self;
  TRY(g, "the stream failed", g->driver->StreamWait(g->stream));
  return 0;
}

int32_t kiln_model_gpu_read(void* self, void* host, const void* device, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  if (bytes) TRY(g, "a copy to the host fails", g->driver->ToHost(host, (uint64_t)device, (size_t)bytes, g->stream));
  return wait(self);
}

int32_t kiln_model_gpu_write(void* self, void* device, const void* host, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  // From pageable memory the driver takes the bytes before it returns.
  if (bytes)
    TRY(g, "a copy to the device fails", g->driver->ToDevice((uint64_t)device, host, (size_t)bytes, g->stream));
  return 0;
}

// What goes to other devices passes through page-locked memory of the host, one exchange at a time: whatever carries
// `comm` needs to know nothing of GPUs.
static int32_t cut_off(struct kiln_model_gpu* g) {
  snprintf(g->error, sizeof g->error, "another device, or a queue of the host program, failed");
  return KILN_COMMUNICATION;
}

static int32_t gather(void* self, const void* comm, const int64_t* group, int64_t members, const void* mine, void* all,
                      int64_t bytes) {
  struct kiln_model_gpu* g = self;
  const struct kiln_comm* c = comm;
  int32_t status = kiln_model_gpu_read(g, g->exchange, mine, bytes);
  if (status) return status;
  if (c->gather(c->self, c->device, group, members, g->exchange, g->exchange + bytes, bytes)) return cut_off(g);
  return kiln_model_gpu_write(g, all, g->exchange + bytes, members * bytes);
}

static int32_t send_bytes(void* self, const void* comm, int64_t channel, const void* data, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  const struct kiln_comm* c = comm;
  int32_t status = kiln_model_gpu_read(g, g->exchange, data, bytes);
  if (status) return status;
  return c->send(c->self, c->device, channel, g->exchange, bytes) ? cut_off(g) : 0;
}

static int32_t receive_bytes(void* self, const void* comm, int64_t channel, void* data, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  const struct kiln_comm* c = comm;
  int32_t status = wait(g);  // for the last exchange, which may still be read
  if (status) return status;
  if (c->receive(c->self, c->device, channel, g->exchange, bytes)) return cut_off(g);
  return kiln_model_gpu_write(g, data, g->exchange, bytes);
}

static int32_t call(void* self, const struct kiln_gpu_call* what, void* const* buffers) {
  struct kiln_model_gpu* g = self;
  if (what->routine == KILN_GPU_GEMM && g->gemm)
    return kiln_model_gpu_gemm(g->gemm, what, what->algorithm[g->image], buffers, (void*)g->workspace, kWorkspaceBytes,
                               g->stream, g->error, sizeof g->error);
  snprintf(g->error, sizeof g->error, "the library was built without routine %d", (int)what->routine);
  return KILN_GPU;
}

void kiln_model_gpu_destroy(struct kiln_model_gpu* g) {
  if (!g) return;
  if (g->context) {
    g->driver->ContextPush(g->context);
    if (g->stream) g->driver->StreamWait(g->stream);
    kiln_model_gpu_end_copies(g);
    kiln_model_gpu_forget(g);
    if (g->weights) g->driver->Free(g->weights);
    if (g->gemm) kiln_model_gpu_gemm_close(g->gemm);
    if (g->arena) g->driver->Free(g->arena);
    if (g->exchange) g->driver->HostFree(g->exchange);
    if (g->workspace) g->driver->Free(g->workspace);
    if (g->module) g->driver->ModuleUnload(g->module);
    if (g->own_stream) g->driver->StreamDestroy(g->stream);
    void* mine;
    g->driver->ContextPop(&mine);
    g->driver->ContextRelease(g->device);
  }
  free(g->functions);
  free(g);
}

// The best image for the device: its own machine code, else code of an earlier minor of its major, else the newest PTX
// that it can compile.
static const struct kiln_gpu_image* choose(const struct kiln_gpu_program* p, int major, int minor) {
  const struct kiln_gpu_image* best = NULL;
  for (int64_t k = 0; k < p->images; ++k) {
    const struct kiln_gpu_image* i = &p->image[k];
    const int64_t version = i->major * 100 + i->minor, here = major * 100 + minor;
    if (version > here || (i->machine_code && i->major != major)) continue;
    if (!best || i->machine_code > best->machine_code ||
        (i->machine_code == best->machine_code && version > best->major * 100 + best->minor))
      best = i;
  }
  return best;
}

static int32_t set_up(struct kiln_model_gpu* g, int device, void* stream) {
  const struct kiln_gpu_program* p = &kiln_model_gpu_program;
  enum { kMajor = 75, kMinor = 76 };
  int count = 0, major = 0, minor = 0;
  if (g->driver->Init(0) || g->driver->DeviceGetCount(&count) || count == 0) {
    snprintf(g->error, sizeof g->error, "the NVIDIA driver finds no GPU");
    return KILN_NO_DEVICE;
  }
  if (device < 0 || device >= count) {
    snprintf(g->error, sizeof g->error, "there is no GPU %d: the machine has %d", device, count);
    return KILN_NO_DEVICE;
  }
  TRY(g, "the GPU cannot be used", g->driver->DeviceGet(&g->device, device));
  TRY(g, "the GPU cannot be asked", g->driver->DeviceGetAttribute(&major, kMajor, g->device));
  TRY(g, "the GPU cannot be asked", g->driver->DeviceGetAttribute(&minor, kMinor, g->device));
  const struct kiln_gpu_image* image = choose(p, major, minor);
  if (!image) {
    snprintf(g->error, sizeof g->error, "the library has no code for GPU %d of compute capability %d.%d (it has: %s)",
             device, major, minor, p->architectures);
    return KILN_NO_DEVICE;
  }
  g->image = image - p->image;
  void* context;
  TRY(g, "no context on the GPU", g->driver->ContextRetain(&context, g->device));
  g->context = context;
  TRY(g, "no context on the GPU", g->driver->ContextPush(context));
  TRY(g, "the GPU program cannot be loaded", g->driver->ModuleLoad(&g->module, image->data));
  g->functions = calloc((size_t)p->kernels + 1, sizeof(void*));
  g->recordings = calloc((size_t)p->regions + 1, sizeof(struct recording));
  if (!g->functions || !g->recordings) return KILN_GPU;
  for (int64_t k = 0; k < p->kernels; ++k)
    TRY(g, p->kernel[k], g->driver->ModuleFunction(&g->functions[k], g->module, p->kernel[k]));
  g->stream = stream;
  if (!stream) {
    enum { kNonBlocking = 1 };
    TRY(g, "no stream", g->driver->StreamCreate(&g->stream, kNonBlocking));
    g->own_stream = 1;
  }
  if (kiln_model_gpu_gemm_open) {
    if (kiln_model_gpu_gemm_open(&g->gemm, g->error, sizeof g->error)) return KILN_NO_DEVICE;
    TRY(g, "no memory for the workspace of cuBLASLt", g->driver->Alloc(&g->workspace, kWorkspaceBytes));
  }
  if (p->exchange_bytes) {
    void* exchange = NULL;
    TRY(g, "no page-locked memory", g->driver->HostAlloc(&exchange, (size_t)p->exchange_bytes, 0));
    g->exchange = exchange;
  }
  if (p->weights_bytes) {
    TRY(g, "no memory for the weights", g->driver->Alloc(&g->weights, (size_t)p->weights_bytes));
    TRY(g, "the weights cannot be copied",
        g->driver->ToDevice(g->weights, kiln_model_weights, (size_t)p->weights_bytes, g->stream));
  }
  return 0;
}

int32_t kiln_model_gpu_create(struct kiln_model_gpu** out, int32_t device, void* stream, char* error,
                              size_t error_bytes) {
  *out = NULL;
  pthread_once(&driver_once, open_driver);
  struct kiln_model_gpu* g = calloc(1, sizeof *g);
  if (!g) return KILN_GPU;
  g->driver = &driver;
  int32_t status = KILN_NO_DEVICE;
  if (driver_problem)
    snprintf(g->error, sizeof g->error, "%s", driver_problem);
  else
    status = set_up(g, device, stream);
  if (g->context) {
    void* mine;
    g->driver->ContextPop(&mine);
  }
  if (status) {
    if (error && error_bytes) snprintf(error, error_bytes, "%s", g->error);
    kiln_model_gpu_destroy(g);
    return status;
  }
  g->graphs = 1;
  g->table = (struct kiln_gpu){g,
                               (void*)g->weights,
                               launch,
                               call,
                               copy,
                               fill,
                               kiln_model_gpu_read,
                               kiln_model_gpu_write,
                               kiln_model_gpu_record,
                               kiln_model_gpu_loop,
                               kiln_model_gpu_choose,
                               gather,
                               send_bytes,
                               receive_bytes};
  *out = g;
  return 0;
}

const char* kiln_model_gpu_error(const struct kiln_model_gpu* g) { return g->error; }

// What runs it: the device's name, and the versions of driver and libraries.
void kiln_model_gpu_describe(struct kiln_model_gpu* g, char* name, size_t name_bytes, char* versions,
                             size_t versions_bytes) {
  int driver_version = 0;
  name[0] = 0;
  g->driver->DeviceGetName(name, (int)name_bytes, g->device);
  g->driver->DriverGetVersion(&driver_version);
  const int n = snprintf(versions, versions_bytes, "driver %d", driver_version);
  if (kiln_model_gpu_gemm_version && n > 0 && (size_t)n < versions_bytes)
    snprintf(versions + n, versions_bytes - (size_t)n, ", cublasLt %lld", (long long)kiln_model_gpu_gemm_version());
}

// The caller's; needed before the first run of a program that communicates.
void kiln_model_gpu_set_comm(struct kiln_model_gpu* g, const struct kiln_comm* comm) { g->comm = comm; }

void kiln_model_gpu_set_graphs(struct kiln_model_gpu* g, int32_t on) { g->graphs = on != 0; }

// `arguments`, `results` and `arena` are addresses on the device. Asynchronous: what it starts goes on the stream.
int32_t kiln_model_gpu_run(struct kiln_model_gpu* g, void* const* arguments, void* const* results, void* arena) {
  if (!g || (!arguments && kiln_model_gpu_program.arguments) || (!results && kiln_model_gpu_program.results))
    return KILN_NULL_POINTER;
  if (kiln_model_gpu_program.communicates && !g->comm) {
    snprintf(g->error, sizeof g->error, "the program communicates and was not told how (_gpu_set_comm)");
    return KILN_COMMUNICATION;
  }
  TRY(g, "no context on the GPU", g->driver->ContextPush(g->context));
  int32_t status = kiln_model_gpu_await_uploads(g);
  if (!status && !arena && kiln_model_gpu_program.arena_bytes) {
    if (!g->arena) status = g->driver->Alloc(&g->arena, (size_t)kiln_model_gpu_program.arena_bytes);
    if (status) status = failed(g, "no memory for the arena", status);
    arena = (void*)g->arena;
  }
  if (!status) status = kiln_model_gpu_entry(arguments, results, arena, &g->table, g->comm);
  void* mine;
  g->driver->ContextPop(&mine);
  return status;
}

int32_t kiln_model_gpu_wait(struct kiln_model_gpu* g) {
  TRY(g, "no context on the GPU", g->driver->ContextPush(g->context));
  int32_t status = wait(g);
  if (!status) status = kiln_model_gpu_await_copies(g);
  void* mine;
  g->driver->ContextPop(&mine);
  return status;
}
