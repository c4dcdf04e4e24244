#include "absl/strings/str_cat.h"
#include "aot/package/header_text.h"

namespace kiln {
namespace {

constexpr absl::string_view kSeparator = ",\n                    ";

constexpr char kGpuNccl[] =
    R"(// The device that this program is, the caller's, on a GPU of its own; needed before the first run. Devices exchange
// arrays by NCCL: its library (libnccl.so.2 of 2.18 or later, or the file that KILN_NCCL names) is opened when the devices
// are connected, in the first run of each, which all make at the same time: one of them asks NCCL for an id, and `comm`
// brings it to the others. Besides, `comm` carries infeed, outfeed and channels, for which a run waits. Collectives are
// put on the run's stream, or beside it; they become part of graphs. A device that does not come within the time limit
// (device_timeout_ms of the config), or that fails, ends the runs of all, in the next call that waits; to go on, all set
// a comm again. A comm of the caller's, and what NCCL connects, stay until another is set, and all devices destroy their
// programs together.
void $NAME_gpu_set_comm($NAME_gpu* gpu, const kiln_comm* comm) $L[gpu_set_comm$];
// The same where there is no kiln_comm, and the host program brings an id of $NAME_gpu_nccl_id's from one device to all
// ($UPPER_GPU_NCCL_ID_BYTES bytes). `device`: this one's number. Waits until all have come. Errors are
// $UPPER_COMMUNICATION, $UPPER_TIMEOUT or $UPPER_DEVICE; $NAME_gpu_error says more.
#define $UPPER_GPU_NCCL_ID_BYTES 128
int32_t $NAME_gpu_nccl_id(void* id, char* error, size_t error_bytes) $L[gpu_nccl_id$];
int32_t $NAME_gpu_connect($NAME_gpu* gpu, int64_t device, const void* id) $L[gpu_connect$];
)";

constexpr char kGpuComm[] =
    R"(// The device that this program is, the caller's; needed before the first run. What devices exchange passes through
// page-locked memory of the host, and a run waits for it.
void $NAME_gpu_set_comm($NAME_gpu* gpu, const kiln_comm* comm) $L[gpu_set_comm$];
)";

constexpr char kGpuClassNccl[] =
    R"(    // The device that this program is, without a kiln_comm ($NAME_c.h): `id` is one of nccl_id's, the same for all.
    Status connect(std::int64_t device, const void* id) {
      return {gpu_ ? $NAME_gpu_connect(gpu_, device, id) : code_};
    }
    static Status nccl_id(void* id) { return {$NAME_gpu_nccl_id(id, nullptr, 0)}; }
)";

constexpr char kGpuClassComm[] = R"(    // The device that this program is; needed before the first run.
    void set_comm(const kiln_comm* comm) {
      if (gpu_) $NAME_gpu_set_comm(gpu_, comm);
    }
)";

constexpr char kGpuCDeclaration[] = R"(
// The GPU program: code for $ARCHS. The NVIDIA driver is opened when the first one is created; the
// binary starts without it.
#define $UPPER_GPU_ARENA_BYTES ((size_t)$GPUARENA)
$GPUHOSTtypedef struct $NAME_gpu $NAME_gpu;
// A stream of the program's own, which nothing else waits for.
#define $UPPER_GPU_OWN_STREAM ((void*)(intptr_t)-1)
// Loads the program on GPU `device`: the best of its images that the driver takes. `stream`: $UPPER_GPU_OWN_STREAM, or a
// stream of the device's primary context; NULL is CUDA's default stream: runs come behind what was put there before, and
// before what is put there later. $UPPER_NO_DEVICE where there is no driver, no such GPU or no code for it; `error`, if
// given, then says which (up to 1024 bytes). One thread at a time is served; others wait for their turn.
int32_t $NAME_gpu_create($NAME_gpu** gpu, int32_t device, void* stream, char* error, size_t error_bytes)
    $[gpu_create$];
void $NAME_gpu_destroy($NAME_gpu* gpu) $L[gpu_destroy$];
// Arguments and results (16-byte aligned) and arena (256-byte aligned; NULL: the program's own) on the device; others are
// refused with $UPPER_NULL_POINTER or $UPPER_MISALIGNED. Puts the run on the stream and returns; it allocates nothing but
// its own arena, once, and waits for nothing but values that decide what runs. Where the caller records the stream as a
// graph (cudaStreamBeginCapture), the run becomes a part of that, which must not outlive the program; run once before.
int32_t $NAME_gpu_run($NAME_gpu* gpu, void* const* arguments, void* const* results, void* arena) $L[gpu_run$];
int32_t $NAME_gpu_wait($NAME_gpu* gpu) $L[gpu_wait$];
// The same with arrays of the host, all in one: copies in, runs, waits, copies out. Its arrays on the device stay.
int32_t $NAME_gpu_run_host($NAME_gpu* gpu, const void* const* arguments, void* const* results) $L[gpu_run_host$];
// Arrays on the device, for programs without a CUDA interface of their own. When $NAME_gpu_to_device returns, the bytes
// of the host have been taken, also from page-locked memory, for which it waits. $NAME_gpu_to_host waits for what was
// started.
void* $NAME_gpu_malloc($NAME_gpu* gpu, size_t bytes) $L[gpu_malloc$];
void $NAME_gpu_free($NAME_gpu* gpu, void* array) $L[gpu_free$];
int32_t $NAME_gpu_to_device($NAME_gpu* gpu, void* array, const void* host, size_t bytes) $L[gpu_to_device$];
int32_t $NAME_gpu_to_host($NAME_gpu* gpu, void* host, const void* array, size_t bytes) $L[gpu_to_host$];
// Copies beside runs: an upload is to an array that no run under way uses, and the next run waits for it; a download
// begins when the runs that were started so far have ended, and later ones must not change its array. $NAME_gpu_wait
// waits for both, and until then the host's memory is theirs. From and to memory that is not page-locked they are
// slower, and may wait.
int32_t $NAME_gpu_upload($NAME_gpu* gpu, void* array, const void* host, size_t bytes) $L[gpu_upload$];
int32_t $NAME_gpu_download($NAME_gpu* gpu, void* host, const void* array, size_t bytes) $L[gpu_download$];
// Page-locked memory of the host.
void* $NAME_gpu_malloc_host($NAME_gpu* gpu, size_t bytes) $L[gpu_malloc_host$];
void $NAME_gpu_free_host($NAME_gpu* gpu, void* memory) $L[gpu_free_host$];
// Whether long runs of kernels are recorded as graphs (they are).
void $NAME_gpu_set_graphs($NAME_gpu* gpu, int32_t on) $L[gpu_set_graphs$];
// What the last failure was.
const char* $NAME_gpu_error(const $NAME_gpu* gpu) $L[gpu_error$];
// The image that runs: "sm_90", or "PTX of sm_90".
const char* $NAME_gpu_image(const $NAME_gpu* gpu) $L[gpu_image$];
// For people: the image and those that the driver refused, how many products cuBLASLt computes and why not the others,
// how many stretches of kernels are recorded and why not the others, what connects the devices. Until the next call.
const char* $NAME_gpu_report($NAME_gpu* gpu) $L[gpu_report$];
)";

constexpr char kGpuClassBegin[] = R"(
  // The GPU program (code for $ARCHS). One thread at a time is served; others wait for their turn.
  class Gpu {
   public:
    // With a stream of its own.
    explicit Gpu(int device = 0) : Gpu(device, $UPPER_GPU_OWN_STREAM) {}
    // `stream`: of the device's primary context; null is CUDA's default stream.
    Gpu(int device, void* stream) {
      code_ = $NAME_gpu_create(&gpu_, device, stream, problem_, sizeof problem_);
    }
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;
    ~Gpu() { $NAME_gpu_destroy(gpu_); }
    // False where the program cannot run: error() says why.
    bool ok() const { return code_ == 0; }
    const char* error() const { return gpu_ ? $NAME_gpu_error(gpu_) : problem_; }
    // What runs ("sm_90", "PTX of sm_90"; empty where nothing can), and how: $NAME_gpu_report.
    const char* image() const { return gpu_ ? $NAME_gpu_image(gpu_) : ""; }
    const char* report() const { return gpu_ ? $NAME_gpu_report(gpu_) : problem_; }
    $NAME_gpu* get() const { return gpu_; }
    Status wait() { return {gpu_ ? $NAME_gpu_wait(gpu_) : code_}; }
    // Copies beside runs: the next run waits for uploads; downloads wait for the runs started so far. wait() for both.
    Status upload(void* array, const void* host, std::size_t bytes) {
      return {gpu_ ? $NAME_gpu_upload(gpu_, array, host, bytes) : code_};
    }
    Status download(void* host, const void* array, std::size_t bytes) {
      return {gpu_ ? $NAME_gpu_download(gpu_, host, array, bytes) : code_};
    }
    // The same of typed arrays. `host` is any that a run takes.
    template <typename T, std::size_t... E>
    Status upload(::kiln::DeviceArray<T, E...> array,
                  typename ::kiln::internal::NotDeduced<::kiln::Array<const T, E...>>::Type host) {
      return host.fits() ? upload(array.pointer(), host.data(), array.kBytes) : Status{$LIBUPPER_EXTENT};
    }
    template <typename T, std::size_t... E>
    Status download(
        typename ::kiln::internal::NotDeduced<::kiln::Array<typename std::remove_const<T>::type, E...>>::Type host,
        ::kiln::DeviceArray<T, E...> array) {
      return host.fits() ? download(host.data(), array.pointer(), array.kBytes) : Status{$LIBUPPER_EXTENT};
    }
    // Memory on the device for an array of type A, which holds nothing yet; empty where there is none. `release` frees it.
    template <typename A>
    typename A::Mutable allocate() {
      return typename A::Mutable(gpu_ ? $NAME_gpu_malloc(gpu_, A::kBytes) : nullptr);
    }
    template <typename T, std::size_t... E>
    void release(::kiln::DeviceArray<T, E...> array) {
      $NAME_gpu_free(gpu_, const_cast<void*>(static_cast<const void*>(array.pointer())));
    }
)";

constexpr char kGpuClassEnd[] = R"(
   private:
    $NAME_gpu* gpu_ = nullptr;
    std::int32_t code_ = 0;
    char problem_[1024] = "";
  };
)";

// Arrays on the device by the names of arguments and results.
std::string DeviceTypes(const CompiledModel& m) {
  std::string out = "    // Arrays in the device's memory, made of its addresses.\n";
  for (const Port& p : m.ports.arguments)
    absl::StrAppend(&out, "    using DeviceArgument_", p.name, " = ", CppDeviceArray(p.shape, p.alias < 0), ";\n");
  for (const Port& p : m.ports.results)
    if (p.alias < 0)
      absl::StrAppend(&out, "    using DeviceResult_", p.name, " = ", CppDeviceArray(p.shape, false), ";\n");
  return out;
}

// run_on_device of parameters that `type` declares, and whose addresses `address` gives.
std::string RunOnDevice(const CompiledModel& m, const std::string& begin,
                        const std::function<std::string(const Port&, bool result)>& type,
                        const std::function<std::string(const std::string&)>& address) {
  return absl::StrCat("    Status run_on_device(void* arena", TypedParameters(m, std::string(kSeparator), type), begin,
                      PointerTables(m, address),
                      "    return {$NAME_gpu_run(gpu_, arguments, results, arena)};\n    }\n");
}

}  // namespace

std::string GpuDeclarations(const CompiledModel& m) {
  if (m.gpu_transport == GpuTransport::kNccl) return absl::StrCat(kGpuCDeclaration, kGpuNccl);
  return absl::StrCat(kGpuCDeclaration, m.communicates ? kGpuComm : "");
}

std::string GpuClass(const CompiledModel& m) {
  const std::string spans = ArrayParameters(m);
  const std::string own = spans.empty() ? "" : spans.substr(kSeparator.size());
  const std::string begin = ") {\n    if (!gpu_) return {code_};\n";
  const auto typed = [](const Port& p, bool result) {
    return absl::StrCat(result ? "DeviceResult_" : "DeviceArgument_", p.name);
  };
  const auto pointers = [](const Port& p, bool result) {
    return absl::StrCat(!result && p.alias < 0 ? "const " : "", CppType(p.shape.type()), "*");
  };
  std::string out = absl::StrCat(
      kGpuClassBegin, m.communicates ? kGpuClassComm : "", m.gpu_transport == GpuTransport::kNccl ? kGpuClassNccl : "",
      DeviceTypes(m),
      "    // Arrays on the device; asynchronous. `arena`: $UPPER_GPU_ARENA_BYTES bytes on the device, or null.\n",
      RunOnDevice(m, begin, typed, [](const std::string& name) { return name + ".pointer()"; }));
  if (!spans.empty())
    absl::StrAppend(&out, "    // The same of addresses that say nothing of extents.\n",
                    RunOnDevice(m, begin, pointers, [](const std::string& name) { return name; }));
  absl::StrAppend(&out, "    // Arrays of the host: copied in, run, waited for, copied out.\n    Status run(", own,
                  begin, FitChecks(m), PointerTables(m, DataOf),
                  "    return {$NAME_gpu_run_host(gpu_, arguments, results)};\n    }\n", kGpuClassEnd);
  if (m.on_cpu) {
    const std::string passed = TypedNames(m);
    absl::StrAppend(
        &out, "\n  // On the GPU where it can be had, else on the CPU: gpu.ok() says which, gpu.error() why.\n",
        "  static Status run_anywhere(Gpu& gpu, const Context& context", spans, ") {\n    return gpu.ok() ? gpu.run(",
        passed, ") : run(context", passed.empty() ? "" : ", ", passed, ");\n  }\n");
  }
  return out;
}

}  // namespace kiln
