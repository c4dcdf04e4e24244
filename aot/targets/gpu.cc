// NVIDIA GPUs: images of the kernels for each, PTX, and the entry as host code.
#include <algorithm>

#include "aot/gpu_code_generation.h"
#include "aot/targets/target.h"
#include "codegen/llvm/runtime_object.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/target/gpu_target.h"

namespace kiln {
namespace {

bool HasProducts(const ThunkSequence& thunks) {
  for (const Thunk& t : thunks) {
    if (t.kind == ThunkKind::LibraryCall && IsGemmCall(t.instruction)) return true;
    for (const ThunkSequence& n : t.nested)
      if (HasProducts(n)) return true;
  }
  return false;
}

bool HasCollectives(const ThunkSequence& thunks) {
  for (const Thunk& t : thunks) {
    if (t.kind == ThunkKind::AllGather || t.kind == ThunkKind::Exchange) return true;
    for (const ThunkSequence& n : t.nested)
      if (HasCollectives(n)) return true;
  }
  return false;
}

int64_t Devices(const Planned& p) { return p.program.module->replica_count * p.program.module->partition_count; }

// What has no measured algorithm on one of the targets.
absl::Status ReportUntuned(const Module& m, const std::vector<GpuTarget>& targets, const CompileOptions& o,
                           CompiledModel* out) {
  if (o.gpu.tuning.level == 0) return absl::OkStatus();
  const std::vector<Instruction*> tunables = Tunables(m);
  for (const GpuTarget& t : targets) {
    int64_t untuned = 0;
    for (const Instruction* i : tunables) {
      if (ChosenAlgorithm(i, t.name) >= 0) continue;
      if (o.gpu.tuning.strict)
        return ErrorAt(i, absl::StrCat("has no tuning result for ", t.name,
                                       ", and strict_tuning asks for one (kiln tune "
                                       "measures it; its key is ",
                                       TuningKey(i), ")"));
      ++untuned;
      out->report.untuned.push_back({t.name, i->name(), TuningKey(i), TuningText(i)});
    }
    if (untuned > 0)
      out->report.notes.push_back(absl::StrCat(untuned, " of ", tunables.size(),
                                               " products and convolutions have no tuning "
                                               "result for ",
                                               t.name,
                                               ": heuristics choose (the manifest lists them; kiln tune "
                                               "measures them)"));
  }
  return absl::OkStatus();
}

// The GPUs that the config names, oldest first.
absl::StatusOr<std::vector<GpuTarget>> DevicesOf(const CompileOptions& o) {
  std::vector<GpuTarget> devices;
  for (const std::string& name : o.gpu.targets) {
    ASSIGN_OR_RETURN(GpuTarget device, FindGpuTarget(name));
    device.tf32 = o.gpu.tf32;
    const auto same = [&](const GpuTarget& d) { return d.name == device.name; };
    if (std::none_of(devices.begin(), devices.end(), same)) devices.push_back(std::move(device));
  }
  std::sort(devices.begin(), devices.end(), [](const GpuTarget& a, const GpuTarget& b) {
    return std::pair(a.major, a.minor) < std::pair(b.major, b.minor);
  });
  return devices;
}

// What a device is given of the library's constants: up to the last that a GPU program reads, and not those of CPU
// programs alone behind it.
int64_t WeightsBytes(const std::vector<Planned>& programs) {
  int64_t bytes = 0;
  for (const Planned& p : programs) {
    const auto& constants = p.program.plan.buffers.constants();
    for (size_t k = 0; k < constants.size(); ++k)
      bytes = std::max(bytes, p.offsets[k] + constants[k]->literal().byte_size());
  }
  return bytes;
}

// Of each argument, then of each result, whether the caller has it in the host's memory; empty: none.
std::vector<int64_t> OnHost(const Module& m) {
  std::vector<int64_t> out;
  const auto add = [&](const Shape& s) {
    for (const Shape& leaf : ArrayLeaves(s)) out.push_back(leaf.LiesInSlowMemory());
  };
  for (const Instruction* p : m.entry()->parameters()) add(p->shape());
  add(m.entry_layout ? m.entry_layout->result : m.entry()->root()->shape());
  return std::find(out.begin(), out.end(), 1) == out.end() ? std::vector<int64_t>() : out;
}

GpuPorts PortsOf(const Planned& p, const CompiledModel& m, int64_t weights_bytes, const CompileOptions& o) {
  GpuPorts ports;
  for (const Port& a : m.ports.arguments) ports.argument_bytes.push_back(a.shape.ByteSize());
  for (const Port& r : m.ports.results) {
    ports.result_bytes.push_back(r.shape.ByteSize());
    ports.result_in_argument.push_back(r.alias);
  }
  ports.on_host = OnHost(*p.program.module);
  ports.arena_bytes = p.program.plan.buffers.temp_bytes();
  ports.host_arena_bytes = p.program.plan.buffers.slow_bytes();
  ports.weights_bytes = weights_bytes;
  ports.communicates = m.communicates;
  ports.exchange_bytes = LargestExchange(p.program.thunks, o.gpu.transport == GpuOptions::Transport::kHost);
  return ports;
}

absl::Status CheckOneSize(const CompiledModel& library) {
  for (const CompiledModel* m : ProgramsOf(library))
    if (!m->ports.batches.empty()) return Unimplemented("error: batch_sizes: a GPU program has one size");
  return absl::OkStatus();
}

absl::Status EmitGpu(const std::vector<Planned>& programs, Compilation* c) {
  RETURN_IF_ERROR(CheckOneSize(c->out));
  ASSIGN_OR_RETURN(const std::vector<GpuTarget> devices, DevicesOf(c->options));
  for (const GpuTarget& d : devices) c->out.code.gpu_targets.push_back(d.name);
  std::vector<ProgramToGenerate> to_generate;
  std::vector<GpuPorts> ports;
  const int64_t weights_bytes = WeightsBytes(programs);
  for (const Planned& p : programs) {
    CompiledModel& m = c->ModelOf(p.entry);
    m.code.gpu_targets = c->out.code.gpu_targets;
    RETURN_IF_ERROR(ReportUntuned(*p.program.module, devices, c->options, &c->out));
    to_generate.push_back(c->ToGenerate(p));
    ports.push_back(PortsOf(p, m, weights_bytes, c->options));
    for (const RuntimeMember& part : RuntimeMembers(RuntimeNeed::GpuPrograms)) {
      ASSIGN_OR_RETURN(std::string object, RuntimeObject(m.symbols, c->out.symbols, part.part,
                                                         c->options.debug.sanitizer, c->options.debug.KeepsKernels()));
      c->members.push_back({absl::StrCat(m.name, "_", part.member, ".o"), std::move(object)});
    }
  }
  ASSIGN_OR_RETURN(GeneratedCode code,
                   GenerateGpuCode(c->out.symbols, to_generate, devices, ports, c->options,
                                   [&](const std::string& s) { c->out.report.notes.push_back(s); }));
  c->Add(std::move(code));
  return absl::OkStatus();
}

absl::Status EmitEmulated(const std::vector<Planned>& programs, Compilation* c) {
  RETURN_IF_ERROR(CheckOneSize(c->out));
  ASSIGN_OR_RETURN(GeneratedCode code,
                   GenerateEmulatedCode(c->out.symbols, c->ToGenerate(programs[0]),
                                        c->options.gpu.emulation == GpuOptions::Emulation::kChecked, c->options));
  code.code_bytes = 0;  // of the host's code, which says nothing of a GPU's
  c->Add(std::move(code));
  return absl::OkStatus();
}

}  // namespace

const Target kGpuTarget = {
    "gpu", ProgramTarget::kGpu, [](const CompileOptions& o) { return !o.gpu.targets.empty() && !Emulates(o); }, EmitGpu,
    [](const std::vector<Planned>& programs, const CompileOptions& o) -> unsigned {
      const bool products =
          std::any_of(programs.begin(), programs.end(), [](const Planned& p) { return HasProducts(p.program.thunks); });
      unsigned needs = RuntimeNeed::Gpu | (products ? RuntimeNeed::GpuLibraries : 0u);
      for (const Planned& p : programs) {
        const bool collectives = HasCollectives(p.program.thunks);
        if (collectives || Communicates(p.program.thunks) || Devices(p) > 1) needs |= RuntimeNeed::GpuDevices;
        if (collectives && o.gpu.transport == GpuOptions::Transport::kNccl) needs |= RuntimeNeed::GpuNccl;
      }
      return needs;
    }};

const Target kEmulatedTarget = {"gpu-emulated", ProgramTarget::kGpu, Emulates, EmitEmulated,
                                [](const std::vector<Planned>&, const CompileOptions&) -> unsigned { return 0; }};

}  // namespace kiln
