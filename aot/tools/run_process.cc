#include "aot/tools/run_process.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "aot/emulator/x86/emulator.h"
#include "aot/tools/gpu_machine.h"
#include "codegen/link/shared_object.h"
#include "compiler/base/text.h"
#include "runtime_min/arrays.h"

namespace kiln {
namespace {

// In a child: the linker as a library leaves LLVM's options changed.
[[noreturn]] void LinkChild(const std::string& archive, const std::string& so) {
  if (const char* cc = std::getenv("CC"); cc && *cc) {
    execlp(cc, cc, "-shared", "-o", so.c_str(), "-Wl,--whole-archive", archive.c_str(), "-Wl,--no-whole-archive", "-lm",
           "-lpthread", static_cast<char*>(nullptr));
    _exit(127);
  }
  const absl::Status linked = LinkLoadable(archive, so);
  if (!linked.ok()) std::fprintf(stderr, "%s\n", std::string(linked.message()).c_str());
  _exit(linked.ok() ? 0 : 1);
}

absl::Status Link(const std::string& archive, const std::string& so) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) LinkChild(archive, so);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return InvalidArgument("error: linking the model failed");
  return absl::OkStatus();
}

// Elements reordered between row-major (a literal's) and the layout that a port has in memory.
Literal Relaid(const Literal& l, const Shape& port, bool to_memory) {
  if (!port.IsArray() || port.HasDefaultLayout() || l.size() == 0) return l;
  Literal out(l.shape());
  const Ints strides = port.Strides();
  const int64_t w = ByteWidth(port.type());
  Ints index(port.rank(), 0);
  uint8_t* data = out.mutable_data();
  for (int64_t k = 0; k < l.size(); ++k) {
    int64_t at = 0;
    for (int64_t d = 0; d < port.rank(); ++d) at += index[d] * strides[d];
    if (to_memory)
      std::memcpy(data + at * w, l.data() + k * w, w);
    else
      std::memcpy(data + k * w, l.data() + at * w, w);
    for (int64_t d = port.rank() - 1; d >= 0 && ++index[d] == port.dim(d); --d) index[d] = 0;
  }
  return out;
}

// In the child, which ends where there is none.
char* Room(size_t n) {
  auto* room = static_cast<char*>(Allocate(n));
  if (!room) {
    std::fprintf(stderr, "error: there is no memory for %zu bytes of arguments, results or arena\n", n);
    _exit(6);
  }
  return room;
}

kiln_arena Filled(int64_t bytes) {
  char* data = Room(static_cast<size_t>(bytes));
  std::memset(data, 0xff, static_cast<size_t>(bytes));
  return {data, static_cast<size_t>(bytes)};
}

}  // namespace

Shared::Shared(size_t bytes)
    : size_(std::max<size_t>(bytes, 1)),
      data_(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}

Shared::~Shared() {
  if (data_ != MAP_FAILED) munmap(data_, size_);
}

absl::Status Shared::Mapped() const {
  if (data_ == MAP_FAILED) return ResourceExhausted("error: cannot map ", size_, " bytes for the results");
  return absl::OkStatus();
}

std::unique_ptr<Emulator> EmulatorOf(void* lib, const CompiledModel& m) {
  const void* library = dlsym(lib, SymbolOf(m, "emulated").c_str());
  return library ? std::make_unique<Emulator>(static_cast<const gpu::EmulatedLibrary*>(library)) : nullptr;
}

Instance::Instance(const CompiledModel& model, const std::vector<Literal>& arguments)
    : m_(model), arguments_(arguments) {
  for (const Literal& l : arguments) {
    char* p = Room(l.byte_size());
    if (l.byte_size()) std::memcpy(p, l.data(), l.byte_size());
    args_.push_back(p);
  }
  for (const Port& p : m_.ports.results) results_.push_back(p.alias >= 0 ? args_[p.alias] : Room(p.shape.ByteSize()));
  arena_ = Filled(m_.report.temp_bytes);
  slow_arena_ = Filled(std::max(m_.report.slow_bytes, m_.report.gpu_host_bytes));
}

void Instance::Restore() {
  for (size_t a = 0; a < arguments_.size(); ++a)
    if (m_.ports.arguments[a].alias >= 0) std::memcpy(args_[a], arguments_[a].data(), arguments_[a].byte_size());
}

int32_t Instance::Run(RunFn run, EmulatedFn emulated, Emulator* emulator, const kiln_pool* pool,
                      const kiln_comm* comm) {
  if (emulator) {
    emulator->set_host_arena(slow_arena_.data);
    return emulated(args_.data(), results_.data(), arena_.data, emulator->table(), comm);
  }
  const kiln_call call = {0, args_.data(), results_.data(), arena_, slow_arena_, pool, comm};
  return run(&call);
}

void Instance::KeepResults(const std::vector<size_t>& offsets, const Shared& shared) const {
  for (size_t r = 0; r < results_.size(); ++r)
    std::memcpy(shared.at(offsets[r]), results_[r], m_.ports.results[r].shape.ByteSize());
}

void* Load(const CompiledModel& m, const std::string& so) {
  void* lib = dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (lib) return lib;
  std::string why = dlerror();
  for (const CustomCallSignature& call : m.custom_calls)
    if (absl::EndsWith(why, "undefined symbol: " + call.target))
      why = absl::StrCat("the module's custom call '", call.target, "' needs a function of that name; ",
                         "CC can name a program that links one (docs/custom_calls.md)");
  std::fprintf(stderr, "error: %s\n", why.c_str());
  return nullptr;
}

absl::StatusOr<Linked> CompileAndLink(std::unique_ptr<Module> module, const CompileOptions& compile, TempFolder* dir,
                                      const std::string& stem) {
  Linked out;
  ASSIGN_OR_RETURN(out.model, Compile(std::move(module), compile));
  ASSIGN_OR_RETURN(const std::string archive, dir->Write(stem + ".a", out.model.code.archive));
  out.so = dir->File(stem + ".so");
  RETURN_IF_ERROR(Link(archive, out.so));
  return out;
}

std::vector<size_t> ResultOffsets(const CompiledModel& m, size_t* total) {
  std::vector<size_t> offsets;
  for (const Port& p : m.ports.results) {
    offsets.push_back(*total);
    *total += (static_cast<size_t>(p.shape.ByteSize()) + 63) / 64 * 64;
  }
  return offsets;
}

std::vector<Literal> ReadResults(const CompiledModel& m, const std::vector<size_t>& offsets, const Shared& shared) {
  std::vector<Literal> out;
  for (size_t r = 0; r < m.ports.results.size(); ++r) {
    Literal l(m.ports.results[r].shape);
    if (l.byte_size()) std::memcpy(l.mutable_data(), shared.at(offsets[r]), l.byte_size());
    out.push_back(Relaid(l, m.ports.results[r].shape, false));
  }
  return out;
}

std::vector<Literal> InMemory(const CompiledModel& m, const std::vector<Literal>& arguments) {
  std::vector<Literal> out;
  for (size_t k = 0; k < arguments.size(); ++k) out.push_back(Relaid(arguments[k], m.ports.arguments[k].shape, true));
  return out;
}

absl::Status WaitFor(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) return Internal("error: the compiled model died with signal ", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return InvalidArgument("error: the compiled model failed");
  return absl::OkStatus();
}

absl::Status CheckBackend(const RunOptions& o, const CompileOptions& compile) {
  const std::string& backend = o.backend;
  if (o.launcher != "threads" && o.launcher != "mpi")
    return InvalidArgument("error: --launcher is threads or mpi, not '", o.launcher, "'");
  if (o.launcher == "mpi" && backend != "cpu") return Unimplemented("error: --launcher mpi runs the backend cpu");
  if (backend == "gpu") return GpuMachine::Get().status();
  if (backend == "cpu-emulated") {
    for (const std::string& level : compile.cpu.levels) RETURN_IF_ERROR(x86::CanEmulate(level));
    return absl::OkStatus();
  }
  if (backend == "cpu" || backend == "reference" || backend == "gpu-emulated") return absl::OkStatus();
  return Unimplemented("error: backend '", backend,
                       "' is not supported; there are cpu, cpu-emulated, gpu, gpu-emulated and reference");
}

CompileOptions For(const RunOptions& run, const CompileOptions& compile) {
  using Emulation = GpuOptions::Emulation;
  CompileOptions out = compile;
  if (run.backend == "gpu") {
    out.cpu.levels.clear();
    if (const auto machine = GpuMachine::Get(); machine.ok()) out.gpu.targets = {(*machine)->target()};
    return out;
  }
  out.cpu.any_machine = run.backend == "cpu-emulated";
  if (run.backend != "gpu-emulated") return out;
  out.gpu.emulation = run.check_accesses ? Emulation::kChecked : Emulation::kPlain;
  out.gpu.fallback_kernels = false;  // the emulator has the library's routines
  return out;
}

void SetTimes(std::vector<double> us, RunResult* out) {
  out->first_us = us[0];
  if (us.size() > 1) us.erase(us.begin());
  std::sort(us.begin(), us.end());
  out->min_us = us.front();
  out->median_us = us[us.size() / 2];
}

}  // namespace kiln
