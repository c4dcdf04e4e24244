// One program on its way to code: optimised, scheduled, every value in its place.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aot/compile.h"
#include "compiler/analysis/cost.h"
#include "compiler/plan/memory_plan.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

struct PlannedProgram {
  std::unique_ptr<Module> module;  // which the plan and the thunks point into
  MemoryPlan plan;
  ThunkSequence thunks;
  Cost cost;
  std::vector<RematerializeStep> rematerialized;
  std::vector<PassRecord> passes;
  std::vector<std::string> notes;  // what the user should know
};

// What a program is compiled for.
enum class ProgramTarget { kCpu, kGpu };

// Runs the target's pipeline, fits the arena to the config's limit and plans memory. `name` is that of the dumps that
// the options ask for; `say` is told each stage.
absl::StatusOr<PlannedProgram> PlanProgram(std::unique_ptr<Module> module, const std::string& name,
                                           const CompileOptions& options, ProgramTarget target,
                                           const std::function<void(const std::string&)>& say);

}  // namespace kiln
