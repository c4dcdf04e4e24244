// Reductions to the greatest (least) number and its first place, in the form that XLA's front ends write.
#pragma once

#include <optional>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Maximum or Minimum, if `i` reduces (values, iota) from (-inf or inf, 0) by
//   (a, i, b, j) -> (w ? a : b, w || (a == b && i < j) ? i : j),   w = a > b || a != a  (a < b for the least).
std::optional<Opcode> ArgReducerOf(const Instruction* i);

}  // namespace kiln
