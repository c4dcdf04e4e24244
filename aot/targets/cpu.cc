// x86-64: a set of kernels for each level, and <name>_run, which picks one.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "aot/targets/target.h"
#include "aot/tuning/tunables.h"
#include "codegen/host/program_object.h"
#include "codegen/llvm/object.h"
#include "codegen/llvm/runtime_object.h"
#include "compiler/hlo/library_calls.h"
#include "runtime_min/abi.h"

namespace kiln {
namespace {

// fmod may use it, as any function of the host's.
bool MayUseX87(const Module& m) {
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::CustomCall) || i->Is(Opcode::Remainder)) return true;
  return false;
}

CallChecks ChecksOf(const Planned& p, const CompileOptions& o, const CompiledModel& m) {
  CallChecks out;
  int64_t written = 2;  // the arenas
  const auto list = [&](const std::vector<Port>& ports, const std::vector<Port>& stated, bool results) {
    std::vector<CallChecks::Port> checks;
    for (size_t k = 0; k < ports.size(); ++k) {
      const Port& port = ports[k];
      written += results == (port.alias < 0);
      checks.push_back({port.shape.ByteSize(), stated[k].alignment, port.alias, port.low, port.high});
    }
    return checks;
  };
  out.arguments = list(p.arguments, m.ports.arguments, false);
  out.results = list(p.results, m.ports.results, true);
  out.arena_bytes = p.program.plan.buffers.temp_bytes();
  out.slow_arena_bytes = p.program.plan.buffers.slow_bytes();
  out.devices = m.communicates ? m.devices : 0;
  out.flush_subnormals = o.cpu.flush_subnormals;
  out.x87 = m.communicates || MayUseX87(*p.program.module);
  out.overlap = written <= KILN_MOST_WRITTEN;
  return out;
}

// <name>_run of one program: the dispatch, the levels that it chooses among, and what it checks.
absl::Status AddCalls(const Planned& p, const std::vector<CpuLevel>& levels, Compilation* c) {
  const std::string symbols = c->out.symbols + p.suffix, stem = c->out.name + p.suffix;
  for (const RuntimeMember& m : RuntimeMembers(RuntimeNeed::Calls)) {
    ASSIGN_OR_RETURN(std::string object, RuntimeObject(symbols, c->out.symbols, m.part, c->options.debug.sanitizer,
                                                       c->options.debug.KeepsKernels()));
    c->members.push_back({absl::StrCat(stem, "_", m.member, ".o"), std::move(object)});
  }
  std::vector<std::string> held;
  for (const CpuLevel& l : levels) held.push_back(l.name);
  ASSIGN_OR_RETURN(std::string program, ProgramObject(symbols, held, c->options.cpu.any_machine,
                                                      ChecksOf(p, c->options, c->ModelOf(p.entry))));
  c->members.push_back({stem + "_program.o", std::move(program)});
  return absl::OkStatus();
}

// Whether some kernel of the programs runs faster by what `level` adds to `below`.
bool GainsByLevel(const CpuLevel& level, const CpuLevel& below, const std::vector<Planned>& programs) {
  for (const Planned& p : programs)
    for (const auto& computation : p.program.module->computations())
      for (const auto& i : computation->instructions())
        if (cpu::GainsByLevel(level, below, i.get())) return true;
  return false;
}

// What is computed as was measured, and levels that results of other levels say nothing of.
void ReportTuned(const std::vector<Planned>& programs, const std::vector<CpuLevel>& levels, const CompileOptions& o,
                 ModelReport* report) {
  if (o.gpu.tuning.level == 0 || !o.gpu.tuning.results) return;
  std::vector<std::string> measured = o.gpu.tuning.results->Targets();
  measured.erase(std::remove_if(measured.begin(), measured.end(), IsGpuTarget), measured.end());
  if (measured.empty()) return;
  for (const CpuLevel& level : levels) {
    size_t all = 0, tuned = 0;
    for (const Planned& p : programs)
      for (const Instruction* i : CpuTunables(*p.program.module)) {
        ++all;
        const int64_t choice = ChosenAlgorithm(i, level.name);
        if (choice < 0) continue;
        ++tuned;
        report->tuned.push_back({level.name, i->name(), TuningKey(i), choice});
      }
    if (all > 0 && tuned == 0)
      report->notes.push_back(absl::StrCat("no tuning result is for a product or convolution of this program at ",
                                           level.name, "; results are for ", absl::StrJoin(measured, ", ")));
  }
}

absl::Status EmitCpu(const std::vector<Planned>& programs, Compilation* c) {
  std::vector<CpuLevel> levels;
  for (const std::string& name : c->options.cpu.levels) {
    ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel(name));
    Restrict(&level, c->options);
    const auto same = [&](const CpuLevel& l) { return l.name == level.name; };
    if (std::none_of(levels.begin(), levels.end(), same)) levels.push_back(std::move(level));
  }
  // A level that would add nothing to one below it is left out.
  const auto adds_nothing = [&](const CpuLevel& level) {
    return std::any_of(levels.begin(), levels.end(), [&](const CpuLevel& below) {
      return IsBelow(below, level) && !GainsByLevel(level, below, programs);
    });
  };
  std::vector<CpuLevel> gaining;
  for (const CpuLevel& l : levels)
    if (!adds_nothing(l)) gaining.push_back(l);
  levels = std::move(gaining);
  for (const CpuLevel& l : levels) c->out.code.cpu_levels.push_back(l.name);
  ReportTuned(programs, levels, c->options, &c->out.report);
  std::vector<ProgramToGenerate> to_generate;
  for (const Planned& p : programs) to_generate.push_back(c->ToGenerate(p));
  ASSIGN_OR_RETURN(GeneratedCode code, GenerateCode(c->out.symbols, to_generate, levels, c->options));
  c->Add(std::move(code));
  for (const Planned& p : programs) RETURN_IF_ERROR(AddCalls(p, levels, c));
  for (const CompiledModel* m : ProgramsOf(c->out)) {
    if (m->ports.batches.empty()) continue;
    std::vector<int64_t> sizes;
    for (const BatchPorts& b : m->ports.batches) sizes.push_back(b.batch);
    ASSIGN_OR_RETURN(std::string object, BatchDispatchObject(m->symbols, sizes, KILN_BATCH_SIZE));
    c->members.push_back({m->name + "_batches.o", std::move(object)});
  }
  return absl::OkStatus();
}

}  // namespace

const Target kCpuTarget = {"cpu", ProgramTarget::kCpu,
                           [](const CompileOptions& o) { return !o.cpu.levels.empty() && !Emulates(o); }, EmitCpu,
                           [](const std::vector<Planned>&, const CompileOptions& o) -> unsigned {
                             return o.cpu.threads != 1 ? RuntimeNeed::Threads : 0u;
                           }};

}  // namespace kiln
