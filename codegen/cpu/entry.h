// A model on the CPU: its kernels, and the entry that calls them.
#pragma once

#include <string>
#include <vector>

#include "codegen/host/entry.h"
#include "codegen/host/kernel_plan.h"

namespace kiln::cpu {

// How a module's kernels are linked: internal ones can be called in their own module only, and separate ones are not
// inlined, so that debuggers and profilers see each.
struct KernelLinkage {
  bool internal = false, separate = false;
};

// Emits the kernels whose places are in `which`, and stores how many units each has in `units`, at its place.
absl::Status EmitKernels(Ir& ir, const KernelPlan& plan, const std::vector<size_t>& which, KernelLinkage linkage,
                         std::vector<int64_t>* units);

// Emits `<name>_entry_<level>` (host/entry.h), whose machine is the pool. It calls the planned kernels of its own
// module or of others. Constants are read at offsets of `<library>_weights`.
absl::Status EmitEntry(Ir& ir, const std::string& name, const ThunkSequence& thunks, const KernelPlan& plan,
                       const std::vector<int64_t>& units, const EntryOptions& options);

}  // namespace kiln::cpu
