#include "aot/tools/runner.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "aot/emulator/x86/emulator.h"
#include "aot/tools/gpu_runner.h"
#include "aot/tools/run_process.h"
#include "compiler/eval/evaluator.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

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
    if (k > 0) instance.Restore();
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

absl::StatusOr<RunResult> RunModule(std::unique_ptr<Module> module, const std::vector<Literal>& arguments,
                                    const CompileOptions& compile, const RunOptions& o) {
  RunResult out;
  size_t wanted = 0;
  for (const Instruction* p : module->entry()->parameters())
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) { wanted += s.IsArray(); });
  if (arguments.size() != wanted)
    return InvalidArgument("error: ", arguments.size(), " inputs given, the module takes ", wanted);
  RETURN_IF_ERROR(CheckBackend(o, compile));
  const int64_t devices = module->replica_count * module->partition_count;
  if (devices > 1) {
    // Every device gets the same inputs; what the first one gives is shown.
    const std::vector<DeviceProgram> programs(devices, DeviceProgram{module.get(), arguments});
    ASSIGN_OR_RETURN(auto results,
                     RunDevices(programs, module->replica_count, module->partition_count, {}, compile, o, &out));
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
  TempFolder dir;
  ASSIGN_OR_RETURN(Linked linked, CompileAndLink(std::move(module), For(o, compile), &dir, "m"));
  out.model = std::move(linked.model);
  if (out.model.communicates)
    return Unimplemented("error: the program waits for queues of a host program, and this command has none");
  const int repeat = std::max(1, o.repeat);
  size_t total = (repeat * sizeof(double) + 63) / 64 * 64;
  const std::vector<size_t> offsets = ResultOffsets(out.model, &total);
  Shared shared(total);
  RETURN_IF_ERROR(shared.Mapped());
  const std::vector<Literal> in_memory = InMemory(out.model, arguments);
  if (o.backend == "gpu") {
    GpuTimes times;
    RETURN_IF_ERROR(RunOnGpus({{&out.model, linked.so, &in_memory}}, {}, repeat, {offsets}, shared, &times));
    out.results = ReadResults(out.model, offsets, shared);
    SetTimes(times.us, &out);
    out.queued_us = times.queued_us;
    return out;
  }
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    if (o.backend == "cpu-emulated") x86::EmulateMissingInstructions();
    _exit(Child(out.model, linked.so, in_memory, o, offsets, shared, repeat));
  }
  RETURN_IF_ERROR(WaitFor(pid));
  out.results = ReadResults(out.model, offsets, shared);
  const double* times = reinterpret_cast<double*>(shared.at(0));
  SetTimes({times, times + repeat}, &out);
  return out;
}

}  // namespace kiln
