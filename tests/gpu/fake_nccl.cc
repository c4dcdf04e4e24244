// libnccl.so.2 for tests: the emulator's stand-in for NCCL (aot/emulator/nccl_stand_in.h) on the streams of the fake
// CUDA driver. Every thread is a rank.
#include "tests/gpu/fake_nccl.h"

#include <dlfcn.h>

#include "aot/emulator/nccl_stand_in.h"
#include "tests/gpu/fake_cuda.h"

namespace {

template <typename F>
F* Driver(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F*>(dlsym(driver, name));
}
#define DRIVER(f) Driver<decltype(f)>(#f)

const kiln_nccl_library& Library() {
  static const bool ready = [] {
    static auto* put = DRIVER(fake_cuda_do);
    static auto* in_body = DRIVER(fake_cuda_in_body);
    kiln::SetStandInStreams({DRIVER(fake_cuda_current_device), DRIVER(fake_cuda_device_of), DRIVER(fake_cuda_graph),
                             DRIVER(fake_cuda_device_recorded), [](void* stream, const std::function<int()>& attempt) {
                               constexpr int kUnsupported = 900;
                               if (in_body(stream)) return kUnsupported;
                               // What the others spoiled holds the stream until it is aborted, as NCCL's kernels do.
                               const std::function<int()> work = [attempt] {
                                 const int code = attempt();
                                 return code == kiln::kNcclBroken ? static_cast<int>(kiln::kNcclNotYet) : code;
                               };
                               return put(stream, &work);
                             }});
    return true;
  }();
  (void)ready;
  return kiln::NcclStandIn();
}

}  // namespace

extern "C" {

// The real functions, by the table's own declarations.
#define EXPORT(name, result, parameters, arguments) \
  result nccl##name parameters { return Library().name arguments; }
EXPORT(GetVersion, kiln_nccl_result, (int* version), (version))
EXPORT(GetErrorString, const char*, (kiln_nccl_result code), (code))
EXPORT(GetLastError, const char*, (kiln_nccl_comm comm), (comm))
EXPORT(GetUniqueId, kiln_nccl_result, (kiln_nccl_id * id), (id))
EXPORT(CommInitRankConfig, kiln_nccl_result,
       (kiln_nccl_comm * comm, int size, kiln_nccl_id id, int rank, kiln_nccl_config* config),
       (comm, size, id, rank, config))
EXPORT(CommSplit, kiln_nccl_result,
       (kiln_nccl_comm comm, int color, int key, kiln_nccl_comm* out, kiln_nccl_config* config),
       (comm, color, key, out, config))
EXPORT(CommFinalize, kiln_nccl_result, (kiln_nccl_comm comm), (comm))
EXPORT(CommDestroy, kiln_nccl_result, (kiln_nccl_comm comm), (comm))
EXPORT(CommAbort, kiln_nccl_result, (kiln_nccl_comm comm), (comm))
EXPORT(CommGetAsyncError, kiln_nccl_result, (kiln_nccl_comm comm, kiln_nccl_result* error), (comm, error))
EXPORT(GroupStart, kiln_nccl_result, (void), ())
EXPORT(GroupEnd, kiln_nccl_result, (void), ())
EXPORT(AllReduce, kiln_nccl_result,
       (const void* from, void* to, size_t n, int type, int op, kiln_nccl_comm comm, void* stream),
       (from, to, n, type, op, comm, stream))
EXPORT(ReduceScatter, kiln_nccl_result,
       (const void* from, void* to, size_t n, int type, int op, kiln_nccl_comm comm, void* stream),
       (from, to, n, type, op, comm, stream))
EXPORT(AllGather, kiln_nccl_result, (const void* from, void* to, size_t n, int type, kiln_nccl_comm comm, void* stream),
       (from, to, n, type, comm, stream))
EXPORT(Broadcast, kiln_nccl_result,
       (const void* from, void* to, size_t n, int type, int root, kiln_nccl_comm comm, void* stream),
       (from, to, n, type, root, comm, stream))
EXPORT(Send, kiln_nccl_result, (const void* from, size_t n, int type, int peer, kiln_nccl_comm comm, void* stream),
       (from, n, type, peer, comm, stream))
EXPORT(Recv, kiln_nccl_result, (void* to, size_t n, int type, int peer, kiln_nccl_comm comm, void* stream),
       (to, n, type, peer, comm, stream))

int64_t fake_nccl_calls(const char* function) {
  const auto calls = kiln::NcclCalls();
  const auto it = calls.find(function);
  return it == calls.end() ? 0 : it->second;
}
void fake_nccl_reset() { kiln::ResetNcclCalls(); }
void fake_nccl_fail(const char* function, int64_t after, int result) { kiln::FailNcclCall(function, after, result); }
int64_t fake_nccl_live() { return kiln::LiveNcclComms(); }

}  // extern "C"
