// What measuring chose for a product or convolution (kiln tune): what its plan takes in place of its own decisions.
//
// A plan takes of a choice what its shape and level allow, and decides the rest. Results may differ by how sums are
// rounded.
#pragma once

#include <vector>

#include "codegen/llvm/cpu_level.h"
#include "compiler/hlo/instruction.h"

namespace kiln::cpu {

// See choices.def.
struct ProductChoice {
  enum Packing { kPlanned, kPacked, kInPlace };
  enum Loops { kProduct, kLoops };
  int64_t vectors = 0;
  Packing packing = kPlanned;
  int64_t panel_rows = 0, slab_bytes = 0, rows = 0;
  Loops loops = kProduct;
};

// By number.
const std::vector<ProductChoice>& ProductChoices();
// The one that the configuration of `i` names for `level`, or that of number 0.
ProductChoice ChoiceOf(const CpuLevel& level, const Instruction* i);

}  // namespace kiln::cpu
