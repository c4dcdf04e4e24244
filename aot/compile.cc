#include "aot/compile.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "aot/collectives.h"
#include "aot/debug/name_ops.h"
#include "aot/entries.h"
#include "aot/package/fingerprint.h"
#include "aot/package/header.h"
#include "aot/package/manifest.h"
#include "aot/package/names.h"
#include "aot/package/weights_table.h"
#include "aot/ports.h"
#include "aot/targets/target.h"
#include "codegen/host/program_object.h"
#include "codegen/llvm/object.h"
#include "codegen/llvm/runtime_object.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

using Progress = std::function<void(const std::string&)>;

// A target and the library's programs for it: of each entry, one for each batch size.
struct Programs {
  const Target* target;
  std::vector<Planned> list;
};

// The functions that the host program must provide, by target.
absl::Status CollectCustomCalls(const ThunkSequence& thunks, const std::string& library,
                                std::vector<CustomCallSignature>* out) {
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) RETURN_IF_ERROR(CollectCustomCalls(n, library, out));
    if (t.kind != ThunkKind::CustomCall) continue;
    ASSIGN_OR_RETURN(CustomCallSignature s, SignatureOf(t.instruction));
    if (const std::string why = WhyNotATarget(s.target, library); !why.empty())
      return ErrorAt(t.instruction, absl::StrCat("calls '", s.target, "', which is ", why));
    auto known = std::find_if(out->begin(), out->end(), [&](const auto& k) { return k.target == s.target; });
    if (known == out->end())
      out->push_back(std::move(s));
    else if (!SamePrototype(*known, s))
      return ErrorAt(t.instruction, absl::StrCat("calls '", s.target,
                                                 "' with another convention, or attributes of "
                                                 "other names or types, than an earlier call"));
  }
  return absl::OkStatus();
}

// Plans one program and adds its figures to those of its entry.
absl::StatusOr<Planned> Plan(std::unique_ptr<Module> module, const std::string& suffix, size_t entry,
                             ProgramTarget target, const Progress& say, Compilation* compilation) {
  CompiledModel *library = &compilation->out, *out = &compilation->ModelOf(entry);
  const CompileOptions& o = compilation->options;
  const size_t stated = module->dimension_arguments.size();
  ASSIGN_OR_RETURN(PlannedProgram p, PlanProgram(std::move(module), library->name + suffix, o, target, say));
  const BufferAssignment& buffers = p.plan.buffers;
  out->report.flops += p.cost.flops;
  out->report.bytes_accessed += p.cost.bytes_accessed;
  out->report.temp_bytes = std::max(out->report.temp_bytes, buffers.temp_bytes());
  int64_t& elsewhere = target == ProgramTarget::kGpu ? out->report.gpu_host_bytes : out->report.slow_bytes;
  elsewhere = std::max(elsewhere, buffers.slow_bytes());
  out->report.thunks += CountThunks(p.thunks);
  out->devices = p.module->replica_count * p.module->partition_count;
  out->communicates = out->devices > 1 || Communicates(p.thunks);
  RETURN_IF_ERROR(CollectCustomCalls(p.thunks, library->name, &library->custom_calls));
  ASSIGN_OR_RETURN(std::vector<CollectiveUse> collectives, CollectivesOf(p, target, o.gpu));
  if (target == ProgramTarget::kGpu && !collectives.empty())
    out->gpu_transport = collectives[0].transport == "nccl" ? GpuTransport::kNccl : GpuTransport::kHost;
  if (out->report.collectives.empty()) out->report.collectives = std::move(collectives);
  for (const auto& c : p.module->computations())
    for (const auto& i : c->instructions()) out->report.fusions += i->Is(Opcode::Fusion);
  out->report.passes.insert(out->report.passes.end(), p.passes.begin(), p.passes.end());
  out->report.rematerialized.insert(out->report.rematerialized.end(), p.rematerialized.begin(), p.rematerialized.end());
  library->report.notes.insert(library->report.notes.end(), p.notes.begin(), p.notes.end());
  std::vector<int64_t> offsets;
  for (const Instruction* c : buffers.constants()) offsets.push_back(compilation->weights.Add(c->literal()));
  std::vector<Port> arguments, results;
  RETURN_IF_ERROR(DescribePorts(*p.module, o, stated, &arguments, &results));
  AlignPorts(buffers, &arguments, &results);
  RETURN_IF_ERROR(MarkWeights(o, library->code.weight_constants, &arguments));
  return Planned{suffix, entry, std::move(p), std::move(offsets), std::move(arguments), std::move(results)};
}

// Plans every variant of an entry for every target. The ports of the first target are the entry's.
absl::Status PlanEntry(EntryPrograms program, size_t entry, const Progress& say, std::vector<Programs>* programs,
                       Compilation* c) {
  CompiledModel& out = c->ModelOf(entry);
  const std::string name = c->out.entries.empty() ? "" : absl::StrCat("_", out.entry);
  for (BatchVariant& v : program.variants) {
    const std::string suffix = v.batch ? absl::StrCat(name, "_b", v.batch) : name;
    int64_t temp_bytes = 0;
    for (auto p = programs->rbegin(); p != programs->rend(); ++p) {
      const bool last = std::next(p) == programs->rend();
      auto done = Plan(last ? std::move(v.module) : v.module->Clone(), suffix, entry, p->target->pipeline, say, c);
      if (!done.ok()) return SayWhichEntry(done.status(), out);
      Planned planned = *std::move(done);
      std::tie(out.ports.arguments, out.ports.results) = std::pair(planned.arguments, planned.results);
      temp_bytes = planned.program.plan.buffers.temp_bytes();
      if (p->target->pipeline == ProgramTarget::kGpu) {
        out.report.gpu_temp_bytes = std::max(out.report.gpu_temp_bytes, temp_bytes);
        out.report.gpu_flops += planned.program.cost.flops;
      }
      p->list.push_back(std::move(planned));
    }
    if (v.batch) out.ports.batches.push_back({v.batch, out.ports.arguments, out.ports.results, temp_bytes});
  }
  return absl::OkStatus();
}

// Large constants of all programs become arguments that one file gives.
absl::Status TakeConstants(int64_t bytes, const std::vector<EntryPrograms>& entries, CompiledModel* out) {
  for (const EntryPrograms& e : entries) {
    std::vector<std::string> of_first;
    for (const BatchVariant& v : e.variants) {
      ASSIGN_OR_RETURN(std::vector<std::string> names,
                       TakeWeightConstants(bytes, &out->code.weight_constants, v.module.get()));
      if (&v == &e.variants[0])
        of_first = std::move(names);
      else if (names != of_first)
        return InvalidArgument("error: weights.constants_from_bytes: large constants depend on the batch size");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckThatBatchesDiffer(const CompiledModel& m) {
  for (size_t k = 1; k < m.ports.batches.size(); ++k) {
    bool differ = false;
    for (size_t a = 0; a < m.ports.arguments.size(); ++a)
      differ = differ || m.ports.batches[k].arguments[a].shape != m.ports.batches[0].arguments[a].shape;
    if (!differ)
      return InvalidArgument(
          "error: batch_sizes: the program has no unbounded dimension that a batch size could settle");
  }
  return absl::OkStatus();
}

void DescribeInterface(CompiledModel* m) {
  m->report.argument_bytes = PortBytes(m->ports.arguments);
  m->report.output_bytes = PortBytes(m->ports.results);
  // One alignment for all variants, as the header states it.
  for (size_t k = 0; k < m->ports.results.size(); ++k)
    for (const BatchPorts& b : m->ports.batches)
      m->ports.results[k].alignment = std::max(m->ports.results[k].alignment, b.results[k].alignment);
}

// What the interface says of all programs together, and the names that follow from it.
void DescribeLibrary(const std::vector<Programs>& programs, Compilation* c) {
  CompiledModel& out = c->out;
  std::sort(out.custom_calls.begin(), out.custom_calls.end(),
            [](const auto& a, const auto& b) { return a.target < b.target; });
  DescribeInterface(&out);
  for (CompiledModel& e : out.entries) {
    DescribeInterface(&e);
    e.custom_calls = out.custom_calls;
    out.report.argument_bytes = std::max(out.report.argument_bytes, e.report.argument_bytes);
    out.report.output_bytes = std::max(out.report.output_bytes, e.report.output_bytes);
  }
  out.report.constant_bytes = static_cast<int64_t>(c->weights.size());
  c->large_weights = out.report.constant_bytes > c->options.model.large_weights_bytes;
  Fingerprint fingerprint(c->options, c->weights.hash());
  fingerprint.AddNumbers({c->large_weights});
  for (const CompiledModel& e : out.entries) fingerprint.AddText(e.entry);
  for (const Programs& of_target : programs)
    for (const Planned& p : of_target.list) {
      fingerprint.AddThunks(p.program.thunks);
      fingerprint.AddPorts(p.arguments);
      fingerprint.AddPorts(p.results);
      fingerprint.AddNumbers(p.offsets);
      fingerprint.AddNumbers({p.program.plan.buffers.temp_bytes(), p.program.plan.buffers.slow_bytes(),
                              p.program.module->replica_count, p.program.module->partition_count});
    }
  if (out.on_cpu) AddNamedOps(programs[0].list, c->options.debug, &fingerprint);
  out.symbols = absl::StrCat(out.name, "_", fingerprint.Text());
  NameSymbolsOfEntries(&out);
}

absl::Status AddRuntime(const std::vector<Programs>& programs, Compilation* c) {
  const CompiledModel& out = c->out;
  unsigned needs = 0;
  for (const Programs& p : programs) needs |= p.target->runtime(p.list, c->options);
  if (c->options.debug.bounds_check) needs |= RuntimeNeed::BoundsCheck;
  if (out.communicates) needs |= RuntimeNeed::Devices;
  if (HasWeights(out)) needs |= RuntimeNeed::Weights;
  if (!Emulates(c->options) && out.entries.empty()) needs |= RuntimeNeed::Hosts;
  if (out.debug.profile) needs |= RuntimeNeed::Profile | (out.threads == 1 ? 0u : RuntimeNeed::ProfiledThreads);
  if (out.debug.check_numerics) needs |= RuntimeNeed::Numerics;
  for (const RuntimeMember& m : RuntimeMembers(needs)) {
    ASSIGN_OR_RETURN(std::string object, RuntimeObject(out.symbols, out.symbols, m.part, c->options.debug.sanitizer,
                                                       c->options.debug.KeepsKernels()));
    c->members.push_back({absl::StrCat(out.name, "_", m.member, ".o"), std::move(object)});
  }
  if (HasWeights(out)) c->members.push_back({out.name + "_weights_table.o", WeightsTableObject(out)});
  RETURN_IF_ERROR(AddInterfaceObjects(c));
  if (out.debug.profile || out.debug.check_numerics) {
    ASSIGN_OR_RETURN(std::string object, OpsMember(out));
    c->members.push_back({out.name + "_ops.o", std::move(object)});
  }
  if (out.communicates) {
    c->members.push_back(
        {out.name + "_device_timeout.o", DeviceTimeoutObject(out.symbols, c->options.model.device_timeout_ms)});
    c->members.push_back({out.name + "_mpi_program.o", MpiProgramObject(out.symbols, out.devices)});
  }
  return absl::OkStatus();
}

absl::Status AddWeights(const std::vector<Programs>& programs, Compilation* c) {
  bool any = false;  // they may all be empty
  for (const Programs& of_target : programs)
    for (const Planned& p : of_target.list) any = any || !p.offsets.empty();
  if (!any) return absl::OkStatus();
  const std::string symbol = SymbolOf(c->out, "weights");
  if (c->large_weights) {
    ASSIGN_OR_RETURN(std::string object, AddressObject(symbol + "_at", symbol));
    c->members.push_back({absl::StrCat(c->out.name, "_weights_at.o"), std::move(object)});
  }
  c->members.push_back(
      {absl::StrCat(c->out.name, "_weights.o"), DataObject(symbol, c->weights.pieces(), c->large_weights)});
  return absl::OkStatus();
}

}  // namespace

std::string SymbolOf(const CompiledModel& m, absl::string_view function) {
  return absl::StrCat(m.symbols, "_", function);
}

absl::StatusOr<CompiledModel> Compile(std::unique_ptr<Module> module, const CompileOptions& o,
                                      const Progress& progress) {
  std::vector<BatchVariant> one;
  one.push_back({0, std::move(module)});
  return Compile(std::move(one), o, progress);
}

absl::StatusOr<CompiledModel> Compile(std::vector<BatchVariant> variants, const CompileOptions& o,
                                      const Progress& progress) {
  std::vector<EntryPrograms> one;
  one.push_back({"", std::move(variants)});
  return Compile(std::move(one), o, progress);
}

absl::StatusOr<CompiledModel> Compile(std::vector<EntryPrograms> entries, const CompileOptions& o,
                                      const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const Progress say = [&](const std::string& s) {
    if (progress) progress(s);
  };
  std::vector<Programs> programs;
  for (const Target* target : {&kCpuTarget, &kGpuTarget, &kEmulatedTarget})
    if (target->wanted(o)) programs.push_back({target, {}});
  if (programs.empty()) return InvalidArgument("error: the config names no target");
  // Programs of one library share their constants, which one order must suit.
  CompileOptions of_several;
  const bool several = programs.size() > 1 || entries.size() > 1 || entries[0].variants.size() > 1;
  if (several) {
    of_several = o;
    of_several.pipeline.disabled.push_back("cpu-weight-packing");
  }
  Compilation c = {several ? of_several : o, {}, {}, false, {}};
  c.out.name = CIdentifier(o.model.name);
  c.out.threads = o.cpu.threads;
  c.out.flush_subnormals = o.cpu.flush_subnormals;
  c.out.algebra = o.pipeline.algebra;
  c.out.keeps_excess = KeepsExcess(o);
  c.out.sums_in_f16 = SumsInF16(o);
  c.out.pass_changes = PassChanges(o);
  c.out.on_cpu = kCpuTarget.wanted(o);
  c.out.debug = o.debug;

  RETURN_IF_ERROR(BeginEntries(entries, o, &c.out));
  if (o.model.weight_constant_bytes > 0) RETURN_IF_ERROR(TakeConstants(o.model.weight_constant_bytes, entries, &c.out));
  for (size_t k = 0; k < entries.size(); ++k) RETURN_IF_ERROR(PlanEntry(std::move(entries[k]), k, say, &programs, &c));
  for (const CompiledModel* m : ProgramsOf(c.out)) RETURN_IF_ERROR(CheckThatBatchesDiffer(*m));
  RETURN_IF_ERROR(JoinEntries(o, &c.out));
  if (c.out.on_cpu) NameOps(&programs[0].list, &c);
  DescribeLibrary(programs, &c);
  say("generating code");
  for (const Programs& p : programs) RETURN_IF_ERROR(p.target->emit(p.list, &c));
  RETURN_IF_ERROR(AddRuntime(programs, &c));
  RETURN_IF_ERROR(AddWeights(programs, &c));
  const uint64_t weights_hash = c.weights.hash();
  // The archive takes as much memory again: what was copied into its members goes first.
  programs.clear();
  c.weights = Weights();
  CompiledModel& out = c.out;
  ASSIGN_OR_RETURN(out.code.archive, WriteArchive(c.members));
  out.code.c_header = CHeader(out);
  out.code.header = CppHeader(out);
  out.code.manifest = Manifest(out, o, out.code.cpu_levels, weights_hash);
  out.report.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return std::move(c.out);
}

}  // namespace kiln
