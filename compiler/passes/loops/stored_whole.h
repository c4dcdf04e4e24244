// Arrays that a loop stores whole before anything reads them.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Elements of the loop's state that are arrays of which it stores every part, another in each iteration, while nothing
// else reads them: what they begin with does not matter. Cost: an index's expression is evaluated for each iteration.
std::vector<int64_t> ElementsStoredWhole(const Instruction* loop);

}  // namespace kiln
