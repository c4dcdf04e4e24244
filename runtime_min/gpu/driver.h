// One model's GPU program at run time, as the files of its runtime share it. C11.
#ifndef KILN_RUNTIME_MIN_GPU_DRIVER_H_
#define KILN_RUNTIME_MIN_GPU_DRIVER_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime_min/abi.h"
#include "runtime_min/gpu/abi.h"

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
  F(Alloc, cuMemAlloc_v2, (uint64_t*, size_t))                                                            \
  F(Free, cuMemFree_v2, (uint64_t))                                                                       \
  F(ToDevice, cuMemcpyHtoDAsync_v2, (uint64_t, const void*, size_t, void*))                               \
  F(ToHost, cuMemcpyDtoHAsync_v2, (void*, uint64_t, size_t, void*))                                       \
  F(Copy, cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void*))                                      \
  F(Fill, cuMemsetD8Async, (uint64_t, unsigned char, size_t, void*))                                      \
  F(StreamCreate, cuStreamCreate, (void**, unsigned))                                                     \
  F(StreamDestroy, cuStreamDestroy_v2, (void*))                                                           \
  F(StreamWait, cuStreamSynchronize, (void*))                                                             \
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

// A recorded region: the graph, and the addresses that it was recorded with.
struct recording {
  void* exec;
  void** addresses;
  int direct;  // it cannot be recorded
};

struct kiln_model_gpu {
  struct kiln_gpu table;
  int device, own_stream, graphs;
  int64_t image;  // that was loaded, by place
  void *context, *module, *stream;
  void** functions;
  uint64_t weights, arena, workspace;
  const struct kiln_gpu_driver* driver;
  void* gemm;  // the state of cublas.c
  char* exchange;
  const struct kiln_comm* comm;
  struct recording* recordings;  // one for each region
  int recording;                 // what goes on the stream becomes part of a graph
  void *condition_module, *condition;
  // Copies to and from the host beside runs: a stream each way, and how far it and the runs have come.
  void *upload_stream, *download_stream, *uploaded, *computed;
  int uploads_pending;
  char error[256];
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

// The stream's work so far has been done.
int32_t kiln_model_gpu_wait(struct kiln_model_gpu* g);
// Of kiln_gpu (abi.h).
#define INTERNAL __attribute__((visibility("hidden")))
INTERNAL int32_t kiln_model_gpu_read(void* self, void* host, const void* device, int64_t bytes);
INTERNAL int32_t kiln_model_gpu_write(void* self, void* device, const void* host, int64_t bytes);
INTERNAL int32_t kiln_model_gpu_record(void* self, int64_t number, kiln_gpu_region region, void* const* arguments,
                                       void* const* results, void* arena, const void* comm);
INTERNAL int32_t kiln_model_gpu_loop(void* self, kiln_gpu_region condition, kiln_gpu_region body,
                                     void* const* arguments, void* const* results, void* arena, const void* comm,
                                     const void* predicate);
INTERNAL int32_t kiln_model_gpu_choose(void* self, int64_t count, const kiln_gpu_region* branches,
                                       void* const* arguments, void* const* results, void* arena, const void* comm,
                                       const void* index, int32_t is_predicate);
// Frees what record keeps.
INTERNAL void kiln_model_gpu_forget(struct kiln_model_gpu* g);
// The next run waits for uploads that are under way.
INTERNAL int32_t kiln_model_gpu_await_uploads(struct kiln_model_gpu* g);
// Waits for copies beside runs, and frees their streams.
INTERNAL int32_t kiln_model_gpu_await_copies(struct kiln_model_gpu* g);
INTERNAL void kiln_model_gpu_end_copies(struct kiln_model_gpu* g);

enum { kWorkspaceBytes = 32 << 20 };  // that library routines may use

#endif  // KILN_RUNTIME_MIN_GPU_DRIVER_H_
