// Which kernels a program needs: equal computations are one kernel.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "codegen/llvm/debug_info.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

// The distinct kernels of a program, in the order of first use. Targets, levels and parts of a library share one plan.
struct KernelPlan {
  struct Item {
    std::string symbol;  // without the level's suffix
    const Instruction* instruction;
    std::set<int64_t> shared;  // operands whose storage is also a result's
    int64_t weight;            // rough cost of compiling it
    std::string label = "";    // what it computes, as an identifier
  };
  std::vector<Item> kernels;
  absl::flat_hash_map<const Instruction*, size_t> of;  // an instruction's place in `kernels`
};
// Operands of `t` whose storage is also a result's: its kernel must not assume that they differ.
std::set<int64_t> SharedOperands(const Thunk& t);
// Symbols end with the names that `debug` has for operations; without it, with what is computed: the same for every
// form that a program is written in.
KernelPlan PlanKernels(const std::string& name, const ThunkSequence& thunks, const DebugProgram* debug = nullptr);

}  // namespace kiln
