// A CUDA driver for tests: device memory is host memory, streams work when they are waited for (fake_streams.h), and
// kernels are run by whatever the test sets. It refuses what a real one refuses, and fails where the test says so.
#include "tests/gpu/fake_cuda.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tests/gpu/fake_streams.h"

namespace {

using namespace fake;  // NOLINT: the other half of this driver

FakeCuda* cuda = nullptr;
struct Function {
  std::string name;
};
std::vector<std::unique_ptr<Function>> functions;
std::map<uintptr_t, size_t> on_device, page_locked;
int64_t allocated = 0;
thread_local std::vector<void*> contexts;
int contexts_of_devices[16];  // their addresses are the contexts

int DeviceOf(const void* context) {
  const auto* at = static_cast<const int*>(context);
  const bool known = at >= contexts_of_devices && at < contexts_of_devices + 16;
  return known ? static_cast<int>(at - contexts_of_devices) : -1;
}

// How a function of the driver begins: it has the lock, and may be one that the test lets fail.
enum Needs { kNothing, kContext };
int Begin(const char* name, Needs needs = kContext) {
  if (cuda->calls++ == cuda->fail_call) {
    cuda->failed = name;
    cuda->failed_in_recording = SomebodyRecords();
    return 2;
  }
  const auto it = cuda->failures.find(name);
  if (it != cuda->failures.end() && it->second.after-- <= 0) {
    const int code = it->second.code;
    if (it->second.always)
      it->second.after = 0;
    else
      cuda->failures.erase(it);
    return code;
  }
  if (needs == kNothing) return kOk;
  if (Sticky()) return Sticky();
  return contexts.empty() ? kInvalidContext : kOk;
}
#define BEGIN(...)                                          \
  const std::lock_guard<std::recursive_mutex> guard_(lock); \
  if (const int code_ = Begin(__func__ __VA_OPT__(, ) __VA_ARGS__)) return code_

// What streams have to do with each other, in order.
std::string NameOf(const Stream* s) { return s->number < 0 ? "the default stream" : std::to_string(s->number); }
void Say(const std::string& what) { cuda->order.push_back(what); }

bool In(const std::map<uintptr_t, size_t>& blocks, const void* p) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  auto it = blocks.upper_bound(at);
  if (it == blocks.begin()) return false;
  --it;
  return at < it->first + it->second;
}

int Allocate(std::map<uintptr_t, size_t>* blocks, size_t bytes, uintptr_t* out) {
  ++cuda->allocations;
  if (const int code = Unsafe()) return code;
  const size_t whole = (bytes + 255) / 256 * 256;
  if (bytes == 0) return kInvalidValue;
  if (static_cast<int64_t>(whole) > cuda->memory - allocated) return kNoMemory;
  *out = reinterpret_cast<uintptr_t>(std::aligned_alloc(256, whole));
  if (!*out) return kNoMemory;
  allocated += static_cast<int64_t>(whole);
  ++cuda->live;
  std::memset(reinterpret_cast<void*>(*out), 0xdb, whole);
  (*blocks)[*out] = whole;
  return kOk;
}

// The driver waits for everything before it frees.
int Release(std::map<uintptr_t, size_t>* blocks, uintptr_t p) {
  const auto it = blocks->find(p);
  if (it == blocks->end()) return kInvalidValue;
  DrainAll();
  allocated -= static_cast<int64_t>(it->second);
  blocks->erase(it);
  --cuda->live;
  std::free(reinterpret_cast<void*>(p));
  return kOk;
}

bool IsCubin(const void* image) {
  constexpr char kElf[] = {0x7f, 'E', 'L', 'F'};
  return std::memcmp(image, kElf, sizeof kElf) == 0;
}

int LaunchCondition(Stream* stream, void** parameters) {
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
    SetHandle(handle, kind == 0 ? set : picked == mine);
    ++cuda->decisions;
    return 0;
  });
}

// Kernels read sixteen bytes at a time.
int RunKernel(const std::string& name, int64_t blocks, int64_t threads, const std::vector<void*>& arguments) {
  for (const void* a : arguments)
    if (reinterpret_cast<uintptr_t>(a) % 16) return kMisaligned;
  ++cuda->launches;
  return cuda->launch(cuda->self, name.c_str(), blocks, threads, arguments.data());
}

struct Exec {
  std::shared_ptr<Graph> graph;
};

}  // namespace

int fake::CurrentDevice() { return contexts.empty() ? -1 : DeviceOf(contexts.back()); }

extern "C" {

FakeCuda* fake_cuda_set(FakeCuda* f) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  std::swap(cuda, f);
  Reset();
  contexts.clear();
  return f;
}
int cuInit(unsigned) {
  BEGIN(kNothing);
  if (cuda->init_code) return cuda->init_code;
  return cuda->devices > 0 ? 0 : 100;
}
int cuDeviceGetCount(int* n) {
  BEGIN(kNothing);
  *n = cuda->devices;
  return 0;
}
int cuDeviceGet(int* d, int ordinal) {
  BEGIN(kNothing);
  *d = ordinal;
  return 0;
}
int cuDeviceGetAttribute(int* v, int attribute, int) {
  BEGIN(kNothing);
  *v = attribute == 75 ? cuda->major : cuda->minor;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int) {
  BEGIN(kNothing);
  std::snprintf(name, static_cast<size_t>(bytes), "a fake");
  return 0;
}
int cuDriverGetVersion(int* version) {
  BEGIN(kNothing);
  *version = cuda->version;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** c, int device) {
  BEGIN(kNothing);
  *c = &contexts_of_devices[device];
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  BEGIN(kNothing);
  return 0;
}
int cuCtxPushCurrent_v2(void* c) {
  BEGIN(kNothing);
  contexts.push_back(c);
  ++cuda->contexts_pushed;
  return 0;
}
int cuCtxPopCurrent_v2(void** c) {
  BEGIN(kNothing);
  if (contexts.empty()) return kInvalidContext;
  *c = contexts.back();
  contexts.pop_back();
  ++cuda->contexts_popped;
  return 0;
}
int cuModuleLoadData(void** m, const void* image) {
  BEGIN();
  if (const int code = Unsafe()) return code;
  const bool own = !IsCubin(image) && std::strstr(static_cast<const char*>(image), ".entry kiln_condition");
  if (!own && cuda->refuse_image)
    if (const int code = cuda->refuse_image(IsCubin(image), image)) return code;
  if (!own) cuda->image = image;
  cuda->loads_in_recordings += SomebodyRecords();
  *m = cuda;
  ++cuda->live;
  return 0;
}
int cuModuleUnload(void*) {
  BEGIN();
  --cuda->live;
  return 0;
}
int cuModuleGetFunction(void** f, void*, const char* name) {
  BEGIN();
  functions.push_back(std::make_unique<Function>(Function{name}));
  *f = functions.back().get();
  return 0;
}
int cuLaunchKernel(void* f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                   void* stream, void** parameters, void**) {
  BEGIN();
  const std::string name = static_cast<Function*>(f)->name;
  if (name == "kiln_condition") return LaunchCondition(Of(stream), parameters);
  const int buffers = cuda->buffers_of(cuda->self, name.c_str());
  std::vector<void*> arguments;
  for (int k = 0; k < buffers; ++k) arguments.push_back(*static_cast<void**>(parameters[k]));
  return Do(Of(stream), [=] { return RunKernel(name, blocks, threads, arguments); });
}
int cuMemAlloc_v2(uint64_t* p, size_t bytes) {
  BEGIN();
  uintptr_t at = 0;
  const int code = Allocate(&on_device, bytes, &at);
  *p = at;
  return code;
}
int cuMemFree_v2(uint64_t p) {
  BEGIN();
  return Release(&on_device, p);
}
int cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  BEGIN();
  uintptr_t at = 0;
  const int code = Allocate(&page_locked, bytes, &at);
  *p = reinterpret_cast<void*>(at);
  return code;
}
int cuMemFreeHost(void* p) {
  BEGIN();
  return Release(&page_locked, reinterpret_cast<uintptr_t>(p));
}
int cuPointerGetAttribute(void* data, int attribute, uint64_t p) {
  BEGIN();
  if (attribute != 2) return kInvalidValue;
  const void* at = reinterpret_cast<const void*>(p);
  if (!In(on_device, at) && !In(page_locked, at)) return kInvalidValue;
  *static_cast<unsigned*>(data) = In(page_locked, at) ? 1 : 2;
  return 0;
}
// Pageable memory is read before the call returns, unless the copy is recorded.
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void* stream) {
  BEGIN();
  Stream* s = Of(stream);
  Say("to device on " + NameOf(s));
  const auto* bytes = static_cast<const char*>(from);
  if (s->recording || In(page_locked, from))
    return Do(s, [=] {
      std::memcpy(reinterpret_cast<void*>(to), bytes, n);
      return 0;
    });
  const std::vector<char> taken(bytes, bytes + n);
  return Do(s, [=] {
    std::memcpy(reinterpret_cast<void*>(to), taken.data(), n);
    return 0;
  });
}
// To pageable memory the call waits.
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void* stream) {
  BEGIN();
  Stream* s = Of(stream);
  Say("to host on " + NameOf(s));
  const int code = Do(s, [=] {
    std::memcpy(to, reinterpret_cast<void*>(from), n);
    return 0;
  });
  if (code || s->recording || In(page_locked, to)) return code;
  return Drain(s);
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void* stream) {
  BEGIN();
  for (const uint64_t p : {to, from})
    if (In(page_locked, reinterpret_cast<const void*>(p))) return kInvalidValue;
  return Do(Of(stream), [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n);
    return 0;
  });
}
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void* stream) {
  BEGIN();
  Stream* s = Of(stream);
  const auto known = [](uint64_t p) {
    const void* at = reinterpret_cast<const void*>(p);
    return In(on_device, at) || In(page_locked, at);
  };
  if (!known(to) || !known(from)) return kInvalidValue;
  return Do(s, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n);
    return 0;
  });
}
int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t n, void* stream) {
  BEGIN();
  return Do(Of(stream), [=] {
    std::memset(reinterpret_cast<void*>(to), byte, n);
    return 0;
  });
}
int cuStreamCreate(void** s, unsigned flags) {
  BEGIN();
  Stream* stream = NewStream(flags == 0);
  stream->number = cuda->streams++;
  stream->device = DeviceOf(contexts.back());
  ++cuda->live;
  *s = stream;
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  BEGIN();
  DestroyStream(Of(stream));
  --cuda->live;
  return 0;
}
int cuStreamSynchronize(void* stream) {
  BEGIN();
  ++cuda->waits;
  return Wait(Of(stream));
}
int cuStreamQuery(void* stream) {
  BEGIN();
  ++cuda->queries;
  Stream* s = Of(stream);
  if (s->recording) return Wait(s);
  return TryDrain(s);
}
int cuEventQuery(void* event) {
  BEGIN();
  const auto& e = *static_cast<Event*>(event);
  if (e.point && e.point->recorded_in) return kCaptureUnsupported;
  return !e.point || e.point->reached ? kOk : kNotReady;
}
int cuStreamIsCapturing(void* stream, int* status) {
  BEGIN();
  const Stream* s = Of(stream);
  *status = !s->recording ? 0 : s->spoiled ? 2 : 1;
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  BEGIN(kNothing);
  *mode = ExchangeMode(*mode);
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  BEGIN();
  *event = new Event;
  ++cuda->live;
  return 0;
}
int cuEventDestroy_v2(void* event) {
  BEGIN();
  delete static_cast<Event*>(event);
  --cuda->live;
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  BEGIN();
  Say("event on " + NameOf(Of(stream)));
  return Record(static_cast<Event*>(event), Of(stream));
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  BEGIN();
  const auto& e = *static_cast<Event*>(event);
  if (e.point) Say(NameOf(Of(stream)) + " awaits " + NameOf(e.point->stream));
  return Await(Of(stream), e);
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
  BEGIN();
  Stream* s = Of(stream);
  if (s == Of(nullptr)) return kCaptureUnsupported;
  if (s->recording) return kIllegalState;
  s->recording = new Graph;
  s->into_body = false;
  s->mode = mode;
  s->spoiled = false;
  ++cuda->captures;
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  const int code = Begin(__func__);
  Stream* s = Of(stream);
  *graph = nullptr;
  if (!s->recording) return kIllegalState;
  Graph* recorded = s->recording;
  s->recording = nullptr;
  const int joined = EndJoined(recorded);
  if (code) return code;  // it has ended all the same
  if (joined) return joined;
  if (s->spoiled) return kCaptureInvalidated;
  *graph = recorded;
  cuda->live += !s->into_body;
  return 0;
}
int cuStreamGetCaptureInfo_v2(void* stream, int* status, uint64_t*, void** graph, void* const** after, size_t* count) {
  BEGIN();
  const Stream* s = Of(stream);
  *status = !s->recording ? 0 : s->spoiled ? 2 : 1;
  *graph = s->recording;
  *after = nullptr;
  *count = 0;
  return 0;
}
int cuStreamUpdateCaptureDependencies(void*, void**, size_t, unsigned flags) {
  BEGIN();
  return flags == 1 ? 0 : 1;
}
int cuStreamBeginCaptureToGraph(void* stream, void* graph, void* const*, const void*, size_t, int mode) {
  BEGIN();
  Stream* s = Of(stream);
  s->recording = static_cast<Graph*>(graph);
  s->into_body = true;
  s->mode = mode;
  s->spoiled = false;
  return 0;
}
int cuGraphConditionalHandleCreate(uint64_t* handle, void* graph, void*, unsigned, unsigned) {
  BEGIN();
  if (!graph || cuda->no_conditions) return 801;
  *handle = NewHandle();
  return 0;
}
// A conditional node, of the parameters that CUgraphNodeParams has room for.
int cuGraphAddNode(void** node, void* graph, void* const*, size_t, void* parameters) {
  BEGIN();
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
  static std::vector<std::unique_ptr<void*>> bodies;
  bodies.push_back(std::make_unique<void*>(body.get()));
  void** const at = bodies.back().get();
  std::memcpy(static_cast<char*>(parameters) + offsetof(decltype(p), graphs), &at, sizeof at);
  static_cast<Graph*>(graph)->nodes.push_back({nullptr, body, p.handle, p.type == 1});
  *node = graph;
  ++cuda->conditional_nodes;
  return 0;
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  BEGIN();
  *exec = new Exec{Copied(*static_cast<Graph*>(graph))};
  ++cuda->live;
  ++cuda->instantiations;
  return 0;
}
int cuGraphExecUpdate_v2(void* exec, void* graph, void*) {
  BEGIN();
  auto* e = static_cast<Exec*>(exec);
  auto updated = Updated(*e->graph, *static_cast<Graph*>(graph));
  if (!updated) return kUpdateFailed;
  e->graph = Copied(*updated);
  ++cuda->updates;
  return 0;
}
int cuGraphLaunch(void* exec, void* stream) {
  BEGIN();
  ++cuda->replays;
  return DoGraph(Of(stream), static_cast<Exec*>(exec)->graph);
}
int cuGraphDestroy(void* graph) {
  BEGIN();
  delete static_cast<Graph*>(graph);
  --cuda->live;
  return 0;
}
int cuGraphExecDestroy(void* exec) {
  BEGIN();
  delete static_cast<Exec*>(exec);
  --cuda->live;
  return 0;
}
}  // extern "C"
