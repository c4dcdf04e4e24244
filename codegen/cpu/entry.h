// A model on the CPU: its kernels, and the entry that calls them.
#pragma once

#include <string>
#include <vector>

#include "codegen/host/entry.h"
#include "codegen/host/kernel_plan.h"

namespace kiln::cpu {

// Emits the kernels whose places are in `which`, and stores how many units each has in `units`, at its place. Internal
// ones can be called in their own module only.
absl::Status EmitKernels(Ir& ir, const KernelPlan& plan, const std::vector<size_t>& which, bool internal,
                         std::vector<int64_t>* units);

// Emits `<name>_entry_<level>` (host/entry.h), whose machine is the pool. It calls the planned kernels of its own
// module or of others. Constants are read at offsets of `<library>_weights`.
absl::Status EmitEntry(Ir& ir, const std::string& name, const ThunkSequence& thunks, const KernelPlan& plan,
                       const std::vector<int64_t>& units, const EntryOptions& options);

}  // namespace kiln::cpu
