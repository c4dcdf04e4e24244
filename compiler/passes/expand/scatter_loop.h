// A scatter as a loop over its updates.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// What takes the place of `scatter`, whose combiner must be a computation on scalars.
Instruction* ScatterAsLoop(Instruction* scatter);

}  // namespace kiln
