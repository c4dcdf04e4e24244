// Which kernels a program needs: equal computations are one kernel.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

// The distinct kernels of a program, in the order of first use. Targets, levels and parts of a library share one plan.
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
// Operands of `t` whose storage is also a result's: its kernel must not assume that they differ.
std::set<int64_t> SharedOperands(const Thunk& t);
KernelPlan PlanKernels(const std::string& name, const ThunkSequence& thunks);

}  // namespace kiln
