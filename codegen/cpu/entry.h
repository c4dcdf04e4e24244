// A model on the CPU: its kernels, and the entry that calls them.
#pragma once

#include <string>
#include <vector>

#include "codegen/host/entry.h"
#include "codegen/host/kernel_plan.h"

namespace kiln::cpu {

// How a module's kernels are linked: internal ones can be called in their own module only, unless they are lent, and
// separate ones are not inlined, so that debuggers and profilers see each.
struct KernelLinkage {
  bool internal = false, separate = false;
  std::vector<bool> lent;  // by place; none: no kernel is
};

// Kernels of another level that an entry calls, by place; none: all are of its own level.
struct BorrowedKernels {
  std::string level;
  std::vector<bool> places;
};

// Whether the instructions that `level` adds to `below` serve the kernel of `i`.
bool GainsByLevel(const CpuLevel& level, const CpuLevel& below, const Instruction* i);

// Emits the kernels whose places are in `which`, and stores how many units each has in `units`, at its place.
absl::Status EmitKernels(Ir& ir, const KernelPlan& plan, const std::vector<size_t>& which, const KernelLinkage& linkage,
                         std::vector<int64_t>* units);

// Emits `<name>_entry_<level>` (host/entry.h), whose machine is the pool. It calls the planned kernels of its own
// module or of others. Constants are read at offsets of `<library>_weights`.
absl::Status EmitEntry(Ir& ir, const std::string& name, const ThunkSequence& thunks, const KernelPlan& plan,
                       const std::vector<int64_t>& units, const BorrowedKernels& borrowed, const EntryOptions& options);

}  // namespace kiln::cpu
