// Sums of narrow floats that are accumulated in f32 and rounded once.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether `i`, a reduction or windows, is a plain sum in a narrow float that is accumulated unrounded in f32. Short
// windows round in every step, as XLA's do; it cuts long ones, where that would add up.
bool SumsUnrounded(const Instruction* i);

}  // namespace kiln
