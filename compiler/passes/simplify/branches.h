// The branches of a conditional, however they were written.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// In order of the value that picks them; of a predicate: what true picks comes first.
inline std::vector<Computation*> BranchesOf(const Instruction* conditional) {
  if (conditional->attrs().branch_computations) return *conditional->attrs().branch_computations;
  return {*conditional->attrs().true_computation, *conditional->attrs().false_computation};
}

inline void SetBranches(Instruction* conditional, const std::vector<Computation*>& branches) {
  if (conditional->attrs().branch_computations) {
    conditional->mutable_attrs().branch_computations = branches;
  } else {
    conditional->mutable_attrs().true_computation = branches[0];
    conditional->mutable_attrs().false_computation = branches[1];
  }
}

}  // namespace kiln
