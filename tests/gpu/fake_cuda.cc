// A CUDA driver for tests: device memory is host memory, streams run at once, graphs are lists of what was captured,
// and kernels are run by whatever the test sets. Threads may use it at once, each with a stream of its own.
#include "tests/gpu/fake_cuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace {

FakeCuda* fake = nullptr;

struct Graph {
  std::vector<std::function<int()>> nodes;
};
thread_local Graph* capturing = nullptr;
std::mutex counting;

struct Function {
  std::string name;
};

int Do(std::function<int()> what) {
  if (!capturing) return what();
  capturing->nodes.push_back(std::move(what));
  return 0;
}

int Count(int FakeCuda::*counter) {
  const std::lock_guard<std::mutex> lock(counting);
  ++(fake->*counter);
  return 0;
}

}  // namespace

extern "C" {

void fake_cuda_set(FakeCuda* f) { fake = f; }

int cuInit(unsigned) { return fake && fake->devices > 0 ? 0 : 100; }
int cuDeviceGetCount(int* n) {
  *n = fake->devices;
  return 0;
}
int cuDeviceGet(int* d, int ordinal) {
  *d = ordinal;
  return 0;
}
int cuDeviceGetAttribute(int* v, int attribute, int) {
  *v = attribute == 75 ? fake->major : fake->minor;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "a fake");
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** c, int) {
  *c = fake;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxPushCurrent_v2(void*) { return 0; }
int cuCtxPopCurrent_v2(void** c) {
  *c = fake;
  return 0;
}
int cuModuleLoadData(void** m, const void* image) {
  fake->image = image;
  *m = fake;
  return 0;
}
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void** f, void*, const char* name) {
  *f = new Function{name};
  return 0;
}
int cuLaunchKernel(void* f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void*,
                   void** parameters, void**) {
  const std::string name = static_cast<Function*>(f)->name;
  const int buffers = fake->buffers_of(fake->self, name.c_str());
  std::vector<void*> arguments;
  for (int k = 0; k < buffers; ++k) arguments.push_back(*static_cast<void**>(parameters[k]));
  const int64_t number = *static_cast<int64_t*>(parameters[buffers]);
  return Do([=] {
    Count(&FakeCuda::launches);
    return fake->launch(fake->self, name.c_str(), blocks, threads, number, arguments.data());
  });
}
int cuMemAlloc_v2(uint64_t* p, size_t bytes) {
  Count(&FakeCuda::allocations);
  *p = reinterpret_cast<uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *p ? 0 : 2;
}
int cuMemFree_v2(uint64_t p) {
  std::free(reinterpret_cast<void*>(p));
  return 0;
}
int cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  Count(&FakeCuda::allocations);
  *p = std::malloc(bytes);
  return *p ? 0 : 2;
}
int cuMemFreeHost(void* p) {
  std::free(p);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void*) {
  std::memcpy(reinterpret_cast<void*>(to), from, n);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void*) {
  if (capturing) return 900;  // as the driver refuses to wait while it records
  std::memcpy(to, reinterpret_cast<void*>(from), n);
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void*) {
  return Do([=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n);
    return 0;
  });
}
int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t n, void*) {
  return Do([=] {
    std::memset(reinterpret_cast<void*>(to), byte, n);
    return 0;
  });
}
int cuStreamCreate(void** s, unsigned) {
  *s = &fake;
  return 0;
}
int cuStreamDestroy_v2(void*) { return 0; }
int cuStreamSynchronize(void*) { return capturing ? 900 : Count(&FakeCuda::waits); }
int cuStreamBeginCapture_v2(void*, int) {
  capturing = new Graph;
  return Count(&FakeCuda::captures);
}
int cuStreamEndCapture(void*, void** graph) {
  *graph = capturing;
  capturing = nullptr;
  return 0;
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  *exec = new Graph(*static_cast<Graph*>(graph));
  return Count(&FakeCuda::instantiations);
}
int cuGraphExecUpdate_v2(void* exec, void* graph, void*) {
  *static_cast<Graph*>(exec) = *static_cast<Graph*>(graph);
  return Count(&FakeCuda::updates);
}
int cuGraphLaunch(void* exec, void*) {
  Count(&FakeCuda::replays);
  for (const auto& node : static_cast<Graph*>(exec)->nodes)
    if (const int code = node()) return code;
  return 0;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return 0;
}
int cuGraphExecDestroy(void* exec) {
  delete static_cast<Graph*>(exec);
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "an error of the fake driver";
  return 0;
}

}  // extern "C"
