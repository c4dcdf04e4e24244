// What one step may do at one place: write over an operand that it reads.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// True if result `output` of `i` may be written where operand `k` lies: an update that needs the old elements only
// where it leaves them, or a loop that reads the operand's element of a position before it writes that position, and no
// other.
bool MayOverwrite(const Instruction* i, int64_t k, int64_t output);

}  // namespace kiln
