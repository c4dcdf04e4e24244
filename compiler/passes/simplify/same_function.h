// Whether two computations are one, whatever they and their instructions are called.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Same instructions over the same operands in the same order of their graphs, functions that they call included.
// Metadata does not count. False may also mean that it was not seen.
bool IsSameFunction(const Computation* a, const Computation* b);
// The same of what two instructions call.
bool CallSameFunctions(const Instruction* a, const Instruction* b);

}  // namespace kiln
