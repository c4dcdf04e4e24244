// One model's GPU program at run time, as the files of its runtime share it. C11.
#ifndef KILN_RUNTIME_MIN_GPU_DRIVER_H_
#define KILN_RUNTIME_MIN_GPU_DRIVER_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime_min/abi.h"
#include "runtime_min/gpu/abi.h"
#include "runtime_min/gpu/gemm.h"
#include "runtime_min/gpu/model.h"
#include "runtime_min/gpu/program.h"

// The functions of the driver that are used: name in libcuda, parameters.
#define DRIVER(F)                                                                                         \
  F(Init, cuInit, (unsigned))                                                                             \
  F(DeviceGetCount, cuDeviceGetCount, (int*))                                                             \
  F(DeviceGet, cuDeviceGet, (int*, int))                                                                  \
  F(DeviceGetAttribute, cuDeviceGetAttribute, (int*, int, int))                                           \
  F(DeviceGetName, cuDeviceGetName, (char*, int, int))                                                    \
  F(DriverGetVersion, cuDriverGetVersion, (int*))                                                         \
  F(ContextRetain, cuDevicePrimaryCtxRetain, (void**, int))                                               \
  F(ContextRelease, cuDevicePrimaryCtxRelease_v2, (int))                                                  \
  F(ContextPush, cuCtxPushCurrent_v2, (void*))                                                            \
  F(ContextPop, cuCtxPopCurrent_v2, (void**))                                                             \
  F(ModuleLoad, cuModuleLoadData, (void**, const void*))                                                  \
  F(ModuleUnload, cuModuleUnload, (void*))                                                                \
  F(ModuleFunction, cuModuleGetFunction, (void**, void*, const char*))                                    \
  F(Launch, cuLaunchKernel,                                                                               \
    (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**)) \
  F(HostAlloc, cuMemHostAlloc, (void**, size_t, unsigned))                                                \
  F(HostFree, cuMemFreeHost, (void*))                                                                     \
  F(PointerAttribute, cuPointerGetAttribute, (void*, int, uint64_t))                                      \
  F(Alloc, cuMemAlloc_v2, (uint64_t*, size_t))                                                            \
  F(Free, cuMemFree_v2, (uint64_t))                                                                       \
  F(ToDevice, cuMemcpyHtoDAsync_v2, (uint64_t, const void*, size_t, void*))                               \
  F(ToHost, cuMemcpyDtoHAsync_v2, (void*, uint64_t, size_t, void*))                                       \
  F(Copy, cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void*))                                      \
  F(CopyAny, cuMemcpyAsync, (uint64_t, uint64_t, size_t, void*))                                          \
  F(Fill, cuMemsetD8Async, (uint64_t, unsigned char, size_t, void*))                                      \
  F(StreamCreate, cuStreamCreate, (void**, unsigned))                                                     \
  F(StreamDestroy, cuStreamDestroy_v2, (void*))                                                           \
  F(StreamWait, cuStreamSynchronize, (void*))                                                             \
  F(StreamCapturing, cuStreamIsCapturing, (void*, int*))                                                  \
  F(CaptureMode, cuThreadExchangeStreamCaptureMode, (int*))                                               \
  F(CaptureBegin, cuStreamBeginCapture_v2, (void*, int))                                                  \
  F(CaptureEnd, cuStreamEndCapture, (void*, void**))                                                      \
  F(GraphBuild, cuGraphInstantiateWithFlags, (void**, void*, unsigned long long))                         \
  F(GraphUpdate, cuGraphExecUpdate_v2, (void*, void*, void*))                                             \
  F(GraphLaunch, cuGraphLaunch, (void*, void*))                                                           \
  F(GraphFree, cuGraphDestroy, (void*))                                                                   \
  F(GraphExecFree, cuGraphExecDestroy, (void*))                                                           \
  F(EventCreate, cuEventCreate, (void**, unsigned))                                                       \
  F(EventDestroy, cuEventDestroy_v2, (void*))                                                             \
  F(EventRecord, cuEventRecord, (void*, void*))                                                           \
  F(StreamAwait, cuStreamWaitEvent, (void*, void*, unsigned))                                             \
  F(ErrorText, cuGetErrorString, (int, const char**))
// Those of conditional nodes in graphs, which drivers before CUDA 12.4 lack.
#define CONDITIONAL(F)                                                                                \
  F(CaptureInfo, cuStreamGetCaptureInfo_v2, (void*, int*, uint64_t*, void**, void* const**, size_t*)) \
  F(CaptureAfter, cuStreamUpdateCaptureDependencies, (void*, void**, size_t, unsigned))               \
  F(CaptureInto, cuStreamBeginCaptureToGraph, (void*, void*, void* const*, const void*, size_t, int)) \
  F(HandleCreate, cuGraphConditionalHandleCreate, (uint64_t*, void*, void*, unsigned, unsigned))      \
  F(NodeAdd, cuGraphAddNode, (void**, void*, void* const*, size_t, void*))

struct kiln_gpu_driver {
#define F(name, symbol, parameters) int(*name) parameters;
  DRIVER(F)
  CONDITIONAL(F)
#undef F
};

enum {
  kRelaxed = 2,                // capture mode
  kNonBlocking = 1,            // a stream that the default stream does not wait for
  kNoTiming = 2,               // an event
  kWorkspaceBytes = 32 << 20,  // that library routines may use
  kAddressAlignment = 16,      // of arguments and results, as kernels read them
  kArenaAlignment = 256,
  kMapped = 2,      // page-locked memory that kernels reach
  kRecordings = 4,  // of one region, for callers whose addresses alternate
  kTries = 2        // at recording a region
};

// A recorded region: the graph, and the addresses that it was recorded with.
struct recording {
  void* exec;
  void** addresses;
  uint64_t used;    // when, by the program's clock
  int conditional;  // it has nodes that values decide, which an update would leave with stale handles
};

struct region {
  int warm;      // it ran once: what libraries load lazily is loaded
  int failures;  // to record it
  char why[128];
  struct recording recording[kRecordings];
};

struct kiln_model_gpu {
  struct kiln_gpu table;
  const struct kiln_gpu_program* program;
  struct kiln_gpu_residence* residence;
  pthread_mutex_t turn;  // of the threads that call
  int device, own_stream, graphs;
  void *context, *stream;
  // Where the caller's stream is CUDA's default one: the program has its own, and events order both.
  int follows_default;
  void *default_reached, *own_reached;
  void** functions;
  uint64_t arena, workspace;
  const struct kiln_gpu_driver* driver;
  const struct kiln_gpu_gemm* gemm;
  void* gemm_state;      // null: there is no library
  char* gemm_refused;    // by call: kiln's own kernel computes it
  int64_t own_products;  // computed so
  char* exchange;
  void* host_arena;
  const struct kiln_comm* comm;
  const struct kiln_gpu_collectives* collectives;  // once NCCL connects the devices
  struct kiln_gpu_nccl* nccl;
  struct region* regions;
  uint64_t clock;
  int recording;    // what goes on the stream becomes part of a graph
  int conditional;  // that graph has nodes which values decide
  void *condition_module, *condition;
  int condition_tried;
  // Copies to and from the host beside runs: a stream each way, and how far it and the runs have come.
  void *upload_stream, *download_stream, *uploaded, *computed;
  int uploads_pending;
  void** staged;  // run_host's arrays on the device
  char error[1024];
  char library_missing[512];  // for the report
  char report[2048];
};

// Keeps what a call of the driver failed with, for people; returns KILN_GPU.
static inline int32_t failed(struct kiln_model_gpu* g, const char* what, int code) {
  const char* text = NULL;
  if (g->driver->ErrorText) g->driver->ErrorText(code, &text);
  snprintf(g->error, sizeof g->error, "%s: %s (%d)", what, text ? text : "unknown error", code);
  return KILN_GPU;
}
#define TRY(g, what, call)                        \
  do {                                            \
    int code_ = (call);                           \
    if (code_) return failed((g), (what), code_); \
  } while (0)

#define INTERNAL __attribute__((visibility("hidden")))

// What runs the collectives of a program whose devices NCCL connects (nccl/device.c).
struct kiln_gpu_collectives {
  // All devices, before the first run. Nothing may be recorded.
  int32_t (*connect)(struct kiln_model_gpu* g);
  // For the stream, and no longer than other devices may take.
  int32_t (*wait)(struct kiln_model_gpu* g);
  void (*replayed)(struct kiln_model_gpu* g);
  // The others shall not wait for this device any more.
  void (*fail)(struct kiln_model_gpu* g);
  // Not `usable`: the context is gone, and the others are left at once.
  void (*disconnect)(struct kiln_model_gpu* g, int usable);
  // For people.
  void (*describe)(const struct kiln_model_gpu* g, char* text, size_t bytes);
};
INTERNAL const struct kiln_gpu_collectives* kiln_model_gpu_collectives(void);

// What programs of a library share on a device, from the first of them that is created to the last that goes.
struct kiln_gpu_residence {
  struct kiln_gpu_residence* next;
  int device;
  int64_t users;
  void* module;
  int64_t image;  // that was loaded, by place
  char images_refused[512];
  uint64_t weights;
};

// driver.c: the driver's functions, opened once; not null: why there are none. The functions of kiln_gpu (abi.h).
INTERNAL const char* kiln_model_gpu_driver(const struct kiln_gpu_driver** driver);
INTERNAL void kiln_model_gpu_fill_table(struct kiln_model_gpu* g);
INTERNAL int32_t kiln_model_gpu_read(void* self, void* host, const void* device, int64_t bytes);
INTERNAL int32_t kiln_model_gpu_write(void* self, void* device, const void* host, int64_t bytes);
// Waits for what was started so far.
INTERNAL int32_t kiln_model_gpu_await(struct kiln_model_gpu* g);
INTERNAL int32_t kiln_model_gpu_refuse_in_recording(struct kiln_model_gpu* g);
// by_host.c
INTERNAL void kiln_model_gpu_by_host(struct kiln_gpu* table);
// create.c: <model>_gpu_create of the program that it names.
INTERNAL int32_t kiln_library_gpu_open(struct kiln_model_gpu** out, const struct kiln_gpu_program* program,
                                       int32_t device, void* stream, char* error, size_t error_bytes);
// residence.c: has the library's code and weights on the device, once for all programs; `move_out` gives them up, and
// frees them for the last one. Not `usable`: the context is gone, and they with it.
INTERNAL int32_t kiln_model_gpu_settle(struct kiln_model_gpu* g, int device);
INTERNAL void kiln_model_gpu_move_out(struct kiln_model_gpu* g, int usable);
// images.c: loads the best image that the driver takes.
INTERNAL int32_t kiln_model_gpu_load_image(struct kiln_model_gpu* g, struct kiln_gpu_residence* r, int device,
                                           int major, int minor);
// products.c: opens the library of products, and has each computed by it or by kiln's own kernel from then on.
INTERNAL int32_t kiln_model_gpu_open_products(struct kiln_model_gpu* g);
INTERNAL int32_t kiln_model_gpu_product(struct kiln_model_gpu* g, const struct kiln_gpu_call* what,
                                        void* const* buffers);
// turns.c: the calling thread has the program and its context, and, if `ordered`, the program's stream is behind the
// caller's; `leave` gives them back, and returns `status` or its own failure.
INTERNAL int32_t kiln_model_gpu_enter(struct kiln_model_gpu* g, int ordered);
INTERNAL int32_t kiln_model_gpu_leave(struct kiln_model_gpu* g, int ordered, int32_t status);
// run.c: a run by a thread that has entered.
INTERNAL int32_t kiln_model_gpu_start(struct kiln_model_gpu* g, void* const* arguments, void* const* results,
                                      void* arena);
// The other devices shall not wait for this one, if its run failed; returns `status`.
INTERNAL int32_t kiln_model_gpu_tell_others(struct kiln_model_gpu* g, int32_t status);
// graphs.c: runs a region, recorded where that pays; frees what it keeps.
INTERNAL int32_t kiln_model_gpu_record(void* self, int64_t number, kiln_gpu_region region, void* const* arguments,
                                       void* const* results, void* arena, const void* comm);
INTERNAL void kiln_model_gpu_forget(struct kiln_model_gpu* g);
// Regions are recorded anew.
INTERNAL void kiln_model_gpu_forget_recordings(struct kiln_model_gpu* g);
// conditions.c: loops and choices that values decide.
INTERNAL int32_t kiln_model_gpu_loop(void* self, kiln_gpu_region condition, kiln_gpu_region body,
                                     void* const* arguments, void* const* results, void* arena, const void* comm,
                                     const void* predicate);
INTERNAL int32_t kiln_model_gpu_choose(void* self, int64_t count, const kiln_gpu_region* branches,
                                       void* const* arguments, void* const* results, void* arena, const void* comm,
                                       const void* index, int32_t is_predicate);
// arrays.c: the next run waits for uploads that are under way; waits for copies beside runs; frees their streams.
INTERNAL int32_t kiln_model_gpu_await_uploads(struct kiln_model_gpu* g);
INTERNAL int32_t kiln_model_gpu_await_copies(struct kiln_model_gpu* g);
INTERNAL void kiln_model_gpu_end_copies(struct kiln_model_gpu* g);

#endif  // KILN_RUNTIME_MIN_GPU_DRIVER_H_
