#include "aot/tools/runner.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "aot/emulator/emulator.h"
#include "aot/tools/evaluate_devices.h"
#include "aot/tools/mpi_launcher.h"
#include "aot/tools/partitioned.h"
#include "aot/tools/temp_dir.h"
#include "codegen/link/shared_object.h"
#include "compiler/base/text.h"
#include "compiler/eval/evaluator.h"
#include "compiler/pipeline/registry.h"
#include "runtime_min/abi.h"
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

// Memory that the child writes and the parent reads.
struct Shared {
  explicit Shared(size_t n)
      : size(std::max<size_t>(n, 1)),
        data(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~Shared() {
    if (data != MAP_FAILED) munmap(data, size);
  }
  char* at(size_t k) const { return static_cast<char*>(data) + k; }
  size_t size;
  void* data;
};

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

using RunFn = int32_t (*)(const kiln_call*);
// The entry of a GPU program that was compiled for the emulator.
using EmulatedFn = int32_t (*)(void* const*, void* const*, void*, const void*, const void*);

// The emulator's kernels flush subnormal numbers, as the GPU's do, if the model does.
class FlushWhileEmulating {
 public:
  FlushWhileEmulating(const CompiledModel& m, bool emulated) : mode_(_mm_getcsr()) {
    constexpr unsigned kFlushAndZero = 0x8040;
    if (emulated && m.flush_subnormals) _mm_setcsr(mode_ | kFlushAndZero);
  }
  ~FlushWhileEmulating() { _mm_setcsr(mode_); }

 private:
  unsigned mode_;
};

// What stands behind the GPU program of a loaded library, if it was compiled for the emulator.
std::unique_ptr<Emulator> EmulatorOf(void* lib, const CompiledModel& m) {
  const void* library = dlsym(lib, SymbolOf(m, "emulated").c_str());
  return library ? std::make_unique<Emulator>(static_cast<const gpu::EmulatedLibrary*>(library)) : nullptr;
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

// A model with the memory of one run.
struct Instance {
  Instance(const CompiledModel& model, const std::vector<Literal>& arguments) : m(model) {
    for (const Literal& l : arguments) {
      char* p = Room(l.byte_size());
      if (l.byte_size()) std::memcpy(p, l.data(), l.byte_size());
      args.push_back(p);
    }
    for (const Port& p : m.ports.results) results.push_back(p.alias >= 0 ? args[p.alias] : Room(p.shape.ByteSize()));
    arena = Filled(m.report.temp_bytes);
    slow_arena = Filled(m.report.slow_bytes);
    args.push_back(slow_arena.data);  // where an emulated entry finds it
  }
  static kiln_arena Filled(int64_t bytes) {
    char* data = Room(static_cast<size_t>(bytes));
    std::memset(data, 0xff, static_cast<size_t>(bytes));
    return {data, static_cast<size_t>(bytes)};
  }
  int32_t Run(RunFn run, EmulatedFn emulated, const Emulator* emulator, const kiln_pool* pool, const kiln_comm* comm) {
    if (emulator) return emulated(args.data(), results.data(), arena.data, emulator->table(), comm);
    const kiln_call call = {0, args.data(), results.data(), arena, slow_arena, pool, comm};
    return run(&call);
  }
  void KeepResults(const std::vector<size_t>& offsets, Shared& shared) const {
    for (size_t r = 0; r < results.size(); ++r)
      std::memcpy(shared.at(offsets[r]), results[r], m.ports.results[r].shape.ByteSize());
  }
  const CompiledModel& m;
  std::vector<void*> args, results;
  kiln_arena arena, slow_arena;
};

// The library; null, with the reason on stderr, if it cannot be loaded.
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

// The child: loads the library, runs it, leaves results and times in `shared`. Exit code 0 is success.
int Child(const CompiledModel& m, const std::string& so, const std::vector<Literal>& arguments, const RunOptions& o,
          const std::vector<size_t>& offsets, Shared& shared, int repeat) {
  void* lib = Load(m, so);
  if (!lib) return 3;
  const std::unique_ptr<Emulator> emulator = EmulatorOf(lib, m);
  const auto find = [&](const char* function) { return dlsym(lib, SymbolOf(m, function).c_str()); };
  auto run = reinterpret_cast<RunFn>(find("run"));
  auto run_emulated = reinterpret_cast<EmulatedFn>(find("gpu_entry"));
  auto make_pool = reinterpret_cast<kiln_pool* (*)(int)>(find("pool_create"));
  if (emulator ? !run_emulated : !run) return 4;
  if (o.threads > 1 && !make_pool && !emulator) {
    std::fprintf(stderr, "error: the library was built for one thread\n");
    return 4;
  }
  const kiln_pool* pool = o.threads > 1 && make_pool ? make_pool(o.threads) : nullptr;
  Instance instance(m, arguments);
  double* times = reinterpret_cast<double*>(shared.at(0));
  for (int k = 0; k < repeat; ++k) {
    if (k > 0)
      for (size_t a = 0; a < arguments.size(); ++a)
        if (m.ports.arguments[a].alias >= 0)
          std::memcpy(instance.args[a], arguments[a].data(), arguments[a].byte_size());
    const FlushWhileEmulating flush(m, emulator != nullptr);
    if (o.before_run) o.before_run(lib, m, k);
    const auto start = std::chrono::steady_clock::now();
    const int32_t code = instance.Run(run, run_emulated, emulator.get(), pool, nullptr);
    times[k] = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    if (code != 0) {
      const auto text = reinterpret_cast<const char* (*)()>(find("numerics_text"));
      std::fprintf(stderr, "error: the model returned status %d%s%s\n", code, text ? ": " : "", text ? text() : "");
      return 5;
    }
    if (k == 0) instance.KeepResults(offsets, shared);
  }
  if (o.after_runs) o.after_runs(lib, m);
  return 0;
}

// A compiled and linked program, and where its results lie in the shared memory of a run.
struct Linked {
  CompiledModel model;
  std::string so;
};

absl::StatusOr<Linked> CompileAndLink(std::unique_ptr<Module> module, const CompileOptions& compile, TempDir* dir,
                                      const std::string& stem) {
  Linked out;
  ASSIGN_OR_RETURN(out.model, Compile(std::move(module), compile));
  if (dir->path().empty()) return InvalidArgument("error: cannot make a temporary directory");
  const std::string archive = dir->File(stem + ".a");
  out.so = dir->File(stem + ".so");
  RETURN_IF_ERROR(WriteFile(archive, out.model.code.archive));
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

// All devices of a program as threads of the child.
int DevicesChild(const std::vector<const Linked*>& programs, const std::vector<std::vector<Literal>>& arguments,
                 const std::vector<Literal>& infeed, const std::vector<std::vector<size_t>>& offsets, Shared& shared) {
  std::vector<RunFn> run;
  std::vector<EmulatedFn> emulated;
  std::vector<std::unique_ptr<Instance>> instances;
  std::vector<std::unique_ptr<Emulator>> emulators;
  kiln_world* world = nullptr;
  kiln_comm* (*comm_of)(kiln_world*, int64_t) = nullptr;
  void (*abort_world)(kiln_world*) = nullptr;
  for (size_t d = 0; d < programs.size(); ++d) {
    void* lib = Load(programs[d]->model, programs[d]->so);
    if (!lib) return 3;
    const CompiledModel& m = programs[d]->model;
    const auto find = [&](const char* function) { return dlsym(lib, SymbolOf(m, function).c_str()); };
    emulators.push_back(EmulatorOf(lib, m));
    run.push_back(reinterpret_cast<RunFn>(find("run")));
    emulated.push_back(reinterpret_cast<EmulatedFn>(find("gpu_entry")));
    if (!world && find("world_create")) {
      world = reinterpret_cast<kiln_world* (*)(int64_t)>(find("world_create"))(static_cast<int64_t>(programs.size()));
      comm_of = reinterpret_cast<kiln_comm* (*)(kiln_world*, int64_t)>(find("world_comm"));
      abort_world = reinterpret_cast<void (*)(kiln_world*)>(find("world_abort"));
    }
    if (emulators.back() ? !emulated.back() : !run.back()) return 4;
    instances.push_back(std::make_unique<Instance>(programs[d]->model, arguments[d]));
  }
  auto comm = [&](size_t d) { return world ? comm_of(world, static_cast<int64_t>(d)) : nullptr; };
  for (const Literal& l : infeed)
    if (kiln_comm* c = comm(0)) c->send(c->self, 0, KILN_INFEED, l.data(), l.byte_size());
  std::vector<int32_t> codes(programs.size());
  std::vector<std::thread> threads;
  for (size_t d = 0; d < programs.size(); ++d)
    threads.emplace_back([&, d] {
      const FlushWhileEmulating flush(programs[d]->model, emulators[d] != nullptr);
      codes[d] = instances[d]->Run(run[d], emulated[d], emulators[d].get(), nullptr, comm(d));
      if (codes[d] != 0 && world) abort_world(world);
    });
  for (std::thread& t : threads) t.join();
  for (size_t d = 0; d < programs.size(); ++d) {
    if (codes[d] != 0) {
      std::fprintf(stderr, "error: the model returned status %d on device %zu\n", codes[d], d);
      return 5;
    }
    instances[d]->KeepResults(offsets[d], shared);
  }
  return 0;
}

absl::Status CheckBackend(const RunOptions& o) {
  const std::string& backend = o.backend;
  if (o.launcher != "threads" && o.launcher != "mpi")
    return InvalidArgument("error: --launcher is threads or mpi, not '", o.launcher, "'");
  if (o.launcher == "mpi" && backend != "cpu") return Unimplemented("error: --launcher mpi runs the backend cpu");
  if (backend == "cpu" || backend == "reference" || backend == "gpu-emulated") return absl::OkStatus();
  return Unimplemented("error: backend '", backend, "' is not supported; there are cpu, gpu-emulated and reference");
}

// Of programs that were partitioned, every device answers with whole results.
void JoinPartitions(const std::vector<DeviceProgram>& devices,
                    const std::map<const Module*, std::unique_ptr<Module>>& partitioned, int64_t partitions,
                    std::vector<std::vector<Literal>>* results) {
  for (size_t first = 0; first < devices.size(); first += static_cast<size_t>(partitions)) {
    const auto entry = ReadPartitionedEntry(*partitioned.at(devices[first].module));
    if (!entry) continue;
    const auto begin = results->begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(partitions);
    std::vector<std::vector<Literal>> parts(begin, end);
    JoinResults(*entry, &parts);
    std::move(parts.begin(), parts.end(), begin);
  }
}

CompileOptions For(const RunOptions& run, const CompileOptions& compile) {
  using Emulation = GpuOptions::Emulation;
  CompileOptions out = compile;
  out.debug.check_plan = true;  // what is about to run is worth it
  if (run.backend != "gpu-emulated") return out;
  out.gpu.emulation = run.check_accesses ? Emulation::kChecked : Emulation::kPlain;
  out.gpu.fallback_kernels = false;  // the emulator has the library's routines
  return out;
}

}  // namespace

absl::Status MakeStatic(Module* module) {
  bool dynamic = false;
  for (const auto& c : module->computations())
    for (const auto& i : c->instructions())
      dynamic = dynamic || i->shape().HasDynamic() || i->Is(Opcode::SetDimensionSize) || i->Is(Opcode::DynamicReshape);
  if (!dynamic) return absl::OkStatus();
  PassContext ctx;
  RETURN_IF_ERROR(FindPass("call-inliner")->run(*module, ctx).status());
  return FindPass("dynamic-padder")->run(*module, ctx).status();
}

std::vector<Literal> SeededArguments(const Module& m, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<Literal> out;
  for (const Instruction* p : m.entry()->parameters()) {
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) {
      if (!s.IsArray()) return;
      Literal l(s);
      for (int64_t k = 0; k < l.size(); ++k) {
        Element e;
        const double u = static_cast<double>(rng() >> 11) * 0x1p-53;
        e.re = 2 * u - 1;
        e.im = 2 * (static_cast<double>(rng() >> 11) * 0x1p-53) - 1;
        e.i = s.type() == PrimitiveType::Pred ? static_cast<int64_t>(rng() & 1)
                                              : static_cast<int64_t>(rng() % 9) - (IsSigned(s.type()) ? 4 : 0);
        l.Set(k, e);
      }
      out.push_back(std::move(l));
    });
  }
  // Arguments that state an extent have the value that the shapes were settled with.
  for (const auto& [number, value] : m.dimension_arguments)
    if (number < static_cast<int64_t>(out.size())) {
      Element e;
      e.i = value;
      out[number].Set(0, e);
    }
  return out;
}

void FlattenLiteral(const Literal& l, std::vector<Literal>* out) {
  if (l.shape().IsTuple()) {
    for (const Literal& e : l.elements()) FlattenLiteral(e, out);
  } else if (l.shape().IsArray()) {
    out->push_back(l);
  }
}

Literal UnflattenLiteral(const Shape& s, const std::vector<Literal>& arrays, size_t* next) {
  if (!s.IsTuple()) return s.IsArray() ? arrays[(*next)++] : Literal(s);
  std::vector<Literal> parts;
  for (const Shape& e : s.tuple()) parts.push_back(UnflattenLiteral(e, arrays, next));
  return Literal::Tuple(parts);
}

absl::StatusOr<std::vector<std::vector<Literal>>> RunDevices(const std::vector<DeviceProgram>& devices,
                                                             int64_t replicas, int64_t partitions,
                                                             const std::vector<Literal>& infeed,
                                                             const CompileOptions& compile, const RunOptions& o,
                                                             CompiledModel* model) {
  RETURN_IF_ERROR(CheckBackend(o));
  if (o.backend == "reference") return EvaluateDevices(devices, replicas, partitions, infeed);
  TempDir dir;
  std::map<const Module*, Linked> linked;
  std::vector<const Linked*> programs;
  std::vector<std::vector<Literal>> arguments;
  std::vector<std::vector<size_t>> offsets;
  std::map<const Module*, std::unique_ptr<Module>> partitioned;
  size_t total = 0;
  for (const DeviceProgram& d : devices) {
    std::unique_ptr<Module>& program = partitioned[d.module];
    if (!program) {
      program = d.module->Clone();
      RETURN_IF_ERROR(PartitionProgram(program.get()));
      CompileOptions options = For(o, compile);
      options.model.name = absl::StrCat(compile.model.name, "_", linked.size());
      // An emulated device, or one on a busy machine, computes for long between exchanges.
      constexpr int64_t kPatience = 600000;
      options.model.device_timeout_ms = std::max(options.model.device_timeout_ms, kPatience);
      ASSIGN_OR_RETURN(linked[d.module], CompileAndLink(program->Clone(), options, &dir, options.model.name));
    }
    programs.push_back(&linked[d.module]);
    const auto entry = ReadPartitionedEntry(*program);
    const auto partition = static_cast<int64_t>(arguments.size()) % partitions;
    arguments.push_back(InMemory(programs.back()->model,
                                 entry ? PartsOfArguments(*entry, *program, d.arguments, partition) : d.arguments));
    offsets.push_back(ResultOffsets(programs.back()->model, &total));
  }
  Shared shared(total);
  if (shared.data == MAP_FAILED) return ResourceExhausted("error: cannot map ", total, " bytes for the results");
  if (o.launcher == "mpi") {
    const auto place = [&](size_t d, size_t k) { return shared.at(offsets[d][k]); };
    RETURN_IF_ERROR(RunRanks(programs[0]->model, programs[0]->so, arguments, place, &dir));
  } else {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) _exit(DevicesChild(programs, arguments, infeed, offsets, shared));
    RETURN_IF_ERROR(WaitFor(pid));
  }
  std::vector<std::vector<Literal>> out;
  for (size_t d = 0; d < devices.size(); ++d) out.push_back(ReadResults(programs[d]->model, offsets[d], shared));
  JoinPartitions(devices, partitioned, partitions, &out);
  if (model) *model = programs[0]->model;
  return out;
}

absl::StatusOr<RunResult> RunModule(std::unique_ptr<Module> module, const std::vector<Literal>& arguments,
                                    const CompileOptions& compile, const RunOptions& o) {
  RunResult out;
  size_t wanted = 0;
  for (const Instruction* p : module->entry()->parameters())
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) { wanted += s.IsArray(); });
  if (arguments.size() != wanted)
    return InvalidArgument("error: ", arguments.size(), " inputs given, the module takes ", wanted);
  RETURN_IF_ERROR(CheckBackend(o));
  const int64_t devices = module->replica_count * module->partition_count;
  if (devices > 1) {
    // Every device gets the same inputs; what the first one gives is shown.
    const std::vector<DeviceProgram> programs(devices, DeviceProgram{module.get(), arguments});
    ASSIGN_OR_RETURN(auto results,
                     RunDevices(programs, module->replica_count, module->partition_count, {}, compile, o, &out.model));
    out.results = std::move(results[0]);
    return out;
  }
  if (o.launcher == "mpi") return InvalidArgument("error: --launcher mpi: the program is for one device");
  if (o.backend == "reference") {
    std::vector<Literal> args;
    size_t next = 0;
    for (const Instruction* p : module->entry()->parameters())
      args.push_back(UnflattenLiteral(p->shape(), arguments, &next));
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(Literal r, Evaluate(*module, args));
    out.first_us = out.min_us = out.median_us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    FlattenLiteral(r, &out.results);
    return out;
  }
  TempDir dir;
  ASSIGN_OR_RETURN(Linked linked, CompileAndLink(std::move(module), For(o, compile), &dir, "m"));
  out.model = std::move(linked.model);
  if (out.model.communicates)
    return Unimplemented("error: the program waits for queues of a host program, and this command has none");
  const int repeat = std::max(1, o.repeat);
  size_t total = (repeat * sizeof(double) + 63) / 64 * 64;
  const std::vector<size_t> offsets = ResultOffsets(out.model, &total);
  Shared shared(total);
  if (shared.data == MAP_FAILED) return ResourceExhausted("error: cannot map ", total, " bytes for the results");
  std::fflush(stdout);
  const std::vector<Literal> in_memory = InMemory(out.model, arguments);
  const pid_t pid = fork();
  if (pid == 0) _exit(Child(out.model, linked.so, in_memory, o, offsets, shared, repeat));
  RETURN_IF_ERROR(WaitFor(pid));
  out.results = ReadResults(out.model, offsets, shared);
  std::vector<double> times(reinterpret_cast<double*>(shared.at(0)), reinterpret_cast<double*>(shared.at(0)) + repeat);
  out.first_us = times[0];
  if (times.size() > 1) times.erase(times.begin());
  std::sort(times.begin(), times.end());
  out.min_us = times.front();
  out.median_us = times[times.size() / 2];
  return out;
}

}  // namespace kiln
