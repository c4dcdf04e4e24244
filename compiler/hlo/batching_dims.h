// Batching dimensions of gathers and scatters.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Those of the operand; none if it has no such attribute.
Ints BatchingDims(const Instruction& gather_or_scatter);
// A dimension of the operand is a batching dimension and is indexed as well, which StableHLO rules out.
bool IndexesBatchingDims(const Instruction& gather_or_scatter);

}  // namespace kiln
