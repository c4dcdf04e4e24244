// A CUDA driver for tests: device memory is host memory, streams run at once, graphs are lists of what was captured,
// and kernels are run by whatever the test sets. Threads may use it at once, each with a stream of its own.
#include "tests/gpu/fake_cuda.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

FakeCuda* fake = nullptr;

struct Graph {
  std::vector<std::function<int()>> nodes;
};
// A stream runs what is put on it at once, or keeps it while it records.
struct Stream {
  Graph* recording = nullptr;
  int number = 0;
};
Stream* Of(void* stream) { return static_cast<Stream*>(stream); }
bool Recording(void* stream) { return Of(stream)->recording != nullptr; }
std::mutex counting;

int Run(const Graph& g) {
  for (const auto& node : g.nodes)
    if (const int code = node()) return code;
  return 0;
}

struct Function {
  std::string name;
};

int Do(void* stream, std::function<int()> what) {
  if (!Recording(stream)) return what();
  Of(stream)->recording->nodes.push_back(std::move(what));
  return 0;
}

// What streams have to do with each other, in order.
void Say(const std::string& what) {
  const std::lock_guard<std::mutex> lock(counting);
  fake->order.push_back(what);
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
  if (std::strstr(static_cast<const char*>(image), "kiln_condition") == nullptr) fake->image = image;
  *m = fake;
  return 0;
}
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void** f, void*, const char* name) {
  *f = new Function{name};
  return 0;
}
int cuLaunchKernel(void* f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                   void* stream, void** parameters, void**) {
  const std::string name = static_cast<Function*>(f)->name;
  if (name == "kiln_condition") {
    uint64_t handle;
    const void* at;
    uint32_t kind, mine, last;
    std::memcpy(&handle, parameters[0], 8);
    std::memcpy(&at, parameters[1], 8);
    std::memcpy(&kind, parameters[2], 4);
    std::memcpy(&mine, parameters[3], 4);
    std::memcpy(&last, parameters[4], 4);
    return Do(stream, [=] {
      uint32_t picked = 0;
      if (kind == 2) std::memcpy(&picked, at, 4);
      const bool set = kind < 2 && *static_cast<const uint8_t*>(at) != 0;
      if (kind == 1) picked = set ? 0 : last;
      if (picked > last) picked = last;
      *reinterpret_cast<unsigned*>(handle) = kind == 0 ? set : picked == mine;
      return Count(&FakeCuda::decisions);
    });
  }
  const int buffers = fake->buffers_of(fake->self, name.c_str());
  std::vector<void*> arguments;
  for (int k = 0; k < buffers; ++k) arguments.push_back(*static_cast<void**>(parameters[k]));
  const int64_t number = *static_cast<int64_t*>(parameters[buffers]);
  return Do(stream, [=] {
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
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void* stream) {
  Say("to device on " + std::to_string(Of(stream)->number));
  std::memcpy(reinterpret_cast<void*>(to), from, n);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void* stream) {
  if (Recording(stream)) return 900;  // as the driver refuses to wait while it records
  Say("to host on " + std::to_string(Of(stream)->number));
  std::memcpy(to, reinterpret_cast<void*>(from), n);
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void* stream) {
  return Do(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n);
    return 0;
  });
}
int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t n, void* stream) {
  return Do(stream, [=] {
    std::memset(reinterpret_cast<void*>(to), byte, n);
    return 0;
  });
}
int cuStreamCreate(void** s, unsigned) {
  auto* stream = new Stream;
  const std::lock_guard<std::mutex> lock(counting);
  stream->number = fake->streams++;
  *s = stream;
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  delete Of(stream);
  return 0;
}
int cuStreamSynchronize(void* stream) { return Recording(stream) ? 900 : Count(&FakeCuda::waits); }
int cuEventCreate(void** event, unsigned) {
  *event = new int(-1);
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<int*>(event);
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  *static_cast<int*>(event) = Of(stream)->number;
  Say("event on " + std::to_string(Of(stream)->number));
  return 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  Say(std::to_string(Of(stream)->number) + " awaits " + std::to_string(*static_cast<int*>(event)));
  return 0;
}
int cuStreamBeginCapture_v2(void* stream, int) {
  Of(stream)->recording = new Graph;
  return Count(&FakeCuda::captures);
}
int cuStreamEndCapture(void* stream, void** graph) {
  *graph = Of(stream)->recording;
  Of(stream)->recording = nullptr;
  return 0;
}
int cuStreamGetCaptureInfo_v2(void* stream, int* status, uint64_t*, void** graph, void* const** after, size_t* count) {
  *status = Recording(stream) ? 1 : 0;
  *graph = Of(stream)->recording;
  *after = nullptr;
  *count = 0;
  return 0;
}
int cuStreamUpdateCaptureDependencies(void*, void**, size_t, unsigned flags) { return flags == 1 ? 0 : 1; }
int cuStreamBeginCaptureToGraph(void* stream, void* graph, void* const*, const void*, size_t, int) {
  Of(stream)->recording = static_cast<Graph*>(graph);
  return 0;
}
int cuGraphConditionalHandleCreate(uint64_t* handle, void* graph, void*, unsigned, unsigned) {
  if (!graph || fake->no_conditions) return 801;
  *handle = reinterpret_cast<uint64_t>(new unsigned(0));
  return 0;
}
// A conditional node, of the parameters that CUgraphNodeParams has room for.
int cuGraphAddNode(void** node, void* graph, void* const*, size_t, void* parameters) {
  struct {
    int32_t node_type, reserved[3];
    uint64_t handle;
    int32_t type;
    uint32_t size;
    void** graphs;
  } p;
  std::memcpy(&p, parameters, sizeof p);
  if (p.node_type != 13 || p.size != 1 || p.type > 1) return 1;
  auto body = std::make_shared<Graph>();
  auto* bodies = new void* {body.get()};
  std::memcpy(static_cast<char*>(parameters) + offsetof(decltype(p), graphs), &bodies, sizeof bodies);
  const auto* go = reinterpret_cast<const unsigned*>(p.handle);
  const bool loop = p.type == 1;
  static_cast<Graph*>(graph)->nodes.push_back([=] {
    int code = 0;
    while (!code && *go) {
      code = Run(*body);
      if (!loop) break;
    }
    return code;
  });
  *node = graph;
  return Count(&FakeCuda::conditional_nodes);
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
  return Run(*static_cast<Graph*>(exec));
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
