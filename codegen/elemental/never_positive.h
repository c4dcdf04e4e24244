// What is known of the sign of an operation's elements from how they are made, so that functions need not provide for
// the others. Looks at a few operations around the instruction; false where nothing is known.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether no element of `i` is above 0: what a softmax subtracts its rows' largest from, -|x|, -x^2. Elements may be
// NaN.
bool NeverPositive(const Instruction* i);

}  // namespace kiln
