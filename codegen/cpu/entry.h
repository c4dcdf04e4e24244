// The host code of a model: its thunks as one function, and the function that picks a CPU level.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "codegen/cpu/kernels.h"
#include "compiler/thunk/thunk.h"

namespace kiln::cpu {

// The distinct kernels of a program, in the order of first use. Levels and parts of a library share one plan.
struct KernelPlan {
  struct Item {
    std::string symbol;  // without the level's suffix
    const Instruction* instruction;
    std::set<int64_t> shared;  // operands whose storage is also a result's
    int64_t weight;            // rough cost of compiling it
  };
  std::vector<Item> kernels;
  absl::flat_hash_map<const Instruction*, size_t> of;  // an instruction's place in `kernels`
};
KernelPlan PlanKernels(const std::string& name, const ThunkSequence& thunks);

// Emits the kernels whose places are in `which`, and stores how many units each has in `units`, at its place. Internal
// ones can be called in their own module only.
absl::Status EmitKernels(Ir& ir, const KernelPlan& plan, const std::vector<size_t>& which, bool internal,
                         std::vector<int64_t>* units);

struct EntryOptions {
  std::string library;        // whose weights and runtime the entry uses
  int threads = 0;            // the most that one run uses; 0: as many as its pool has; 1: kernels are never split
  bool poison_freed = false;  // overwrite the bytes of every arena slice after the last thunk that touches it
  int64_t replicas = 1, partitions = 1;
  bool kernels_elsewhere = false;  // in other modules: nothing can be inlined into the entry
};

// Emits `<name>_entry_<level>(ptr arguments, ptr results, ptr arena, ptr pool, ptr comm) -> i32`, which calls the
// planned kernels of its own module or of others. Constants are read at offsets of `<library>_weights`.
absl::Status EmitEntry(Ir& ir, const std::string& name, const ThunkSequence& thunks,
                       const std::vector<int64_t>& constant_offsets, const KernelPlan& plan,
                       const std::vector<int64_t>& units, const EntryOptions& options);

}  // namespace kiln::cpu
