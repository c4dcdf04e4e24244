// Copy insertion and what it leaves to clear away.
#pragma once

#include "absl/status/status.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// Afterwards the module is ready for PlanMemory.
absl::Status PrepareForPlanning(Module& module);

}  // namespace kiln
