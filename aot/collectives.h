// What a program's devices exchange, and how, for manifests and people.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "aot/model.h"
#include "aot/options.h"
#include "aot/planning.h"

namespace kiln {

// In the order of its thunks, nested ones included.
absl::StatusOr<std::vector<CollectiveUse>> CollectivesOf(const PlannedProgram& program, ProgramTarget target,
                                                         const GpuOptions& gpu);

}  // namespace kiln
