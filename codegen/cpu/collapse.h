// Fewer, longer loops: a fused computation over merged dimensions.
#pragma once

#include <memory>

#include "compiler/hlo/instruction.h"

namespace kiln::cpu {

// A copy of `f` in which dimensions of the loop space are merged wherever every instruction treats them alike
// (elementwise operations, broadcasts, transposes of parameters, slices and the like that leave the dimensions whole,
// reductions at the root, several results). nullptr if nothing merges.
std::unique_ptr<Module> Collapse(const Computation& f);

}  // namespace kiln::cpu
