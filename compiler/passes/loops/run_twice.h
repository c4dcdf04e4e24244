// Loops that run their body twice in each round.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Makes a round of `loop`, which runs `trips` times, out of two. An odd iteration goes before the loop. Computations
// that nobody calls any more stay in the module.
void RunTwiceARound(Instruction* loop, int64_t trips);

}  // namespace kiln
