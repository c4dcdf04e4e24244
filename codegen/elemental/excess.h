// Values of BF16 and F16 that hold more digits than their type while a kernel computes with them (Ir::keeps_excess):
// who may hold them, and who wants values as their type has them.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether a value may hold more digits than its type.
bool MayHoldExcess(const Instruction* i);

// Whether an elementwise operation on floats takes rounded operands: those that differ in their last digit may give
// results far apart, or the program asks for the type.
bool TakesRounded(const Instruction* i);

// Whether a choice between elements takes the value as it is, or moved: of equal ones it takes the first, and rounding
// makes values equal.
bool FeedsChoice(const Instruction* i);

}  // namespace kiln
