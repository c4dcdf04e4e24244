#include "aot/tuning/tuner.h"

#include "aot/gpu_code_generation.h"
#include "aot/planning.h"
#include "codegen/llvm/object.h"
#include "codegen/llvm/runtime_object.h"
#include "compiler/base/text.h"
#include "compiler/hlo/tuning.h"
#include "compiler/target/gpu_target.h"

namespace kiln {

absl::StatusOr<Tuner> MakeTuner(std::unique_ptr<Module> module, const CompileOptions& o, bool again) {
  if (o.gpu.targets.size() != 1)
    return InvalidArgument("error: tuning is for one GPU at a time: name it by --target, as in --target sm_90");
  if (o.gpu.tuning.level == 0) return InvalidArgument("error: tuning level 0 measures nothing");
  ASSIGN_OR_RETURN(GpuTarget target, FindGpuTarget(o.gpu.targets[0]));
  target.tf32 = o.gpu.tf32;
  Tuner out;
  out.name = CIdentifier(o.model.name);
  out.target = target.name;
  ASSIGN_OR_RETURN(PlannedProgram planned,
                   PlanProgram(std::move(module), out.name, o, ProgramTarget::kGpu, [](const std::string&) {}));
  std::vector<Instruction*> subjects;
  absl::flat_hash_set<std::string> seen;
  for (Instruction* i : Tunables(*planned.module)) {
    const std::string key = TuningKey(i);
    if (!seen.insert(key).second) continue;
    if (!again && o.gpu.tuning.results && o.gpu.tuning.results->Find(target.name, key))
      ++out.known;
    else
      subjects.push_back(i);
  }
  out.subjects = static_cast<int64_t>(subjects.size());
  if (subjects.empty()) return out;
  ASSIGN_OR_RETURN(TunerCode code, GenerateTunerCode(out.name, subjects, target, o,
                                                     [&](const std::string& s) { out.notes.push_back(s); }));
  out.candidates = code.candidates;
  unsigned needs = 0;
  if (o.gpu.emulation == GpuOptions::Emulation::kNone) {
    needs = RuntimeNeed::Gpu | RuntimeNeed::GpuPrograms | RuntimeNeed::Tuner;
    if (code.calls_cublas) needs |= RuntimeNeed::GpuLibraries;
  }
  for (const RuntimeMember& m : RuntimeMembers(needs)) {
    ASSIGN_OR_RETURN(std::string object, RuntimeObject(out.name, out.name, m.part, Sanitizer::kNone));
    code.members.push_back({absl::StrCat(out.name, "_", m.member, ".o"), std::move(object)});
  }
  ASSIGN_OR_RETURN(out.archive, WriteArchive(code.members));
  return out;
}

}  // namespace kiln
