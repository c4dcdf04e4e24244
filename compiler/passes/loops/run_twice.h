// Loops that run their body twice in each round.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// How often `loop` runs, as while-loop-trip-count-annotator left it; 0 if that is not known, or it is no loop.
int64_t KnownTrips(const Instruction* loop);

// Makes a round of `loop`, which runs `trips` times, out of two. An odd iteration goes before the loop. Computations
// that nobody calls any more stay in the module.
void RunTwiceARound(Instruction* loop, int64_t trips);

}  // namespace kiln
