// Where a loop reads the values that it is computed from, so that a value may be computed before and kept for the place
// that the loop is at.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether each element of `root` is computed from the element of `value` at its own place and from no other one: only
// elementwise operations lie between them. A value that `root` does not read at all is read nowhere else. Takes time in
// proportion to the computation, however many paths lead from one to the other.
bool ReadsAtOwnPlaceOnly(const Instruction* root, const Instruction* value);

}  // namespace kiln
