// Whether two computations are one, whatever they and their instructions are called.
#pragma once

#include <cstdint>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Same instructions over the same operands in the same order of their graphs, functions that they call included.
// Metadata does not count. False may also mean that it was not seen.
bool IsSameFunction(const Computation* a, const Computation* b);
// The same of what two instructions call.
bool CallSameFunctions(const Instruction* a, const Instruction* b);

// Equal for what is the same function or the same constant, and rarely for others: opcodes, edges and constants count.
uint64_t FunctionHash(const Computation* f);
// Its shape and a sample of its bytes, so that large ones cost little.
uint64_t ConstantHash(const Instruction* i);

}  // namespace kiln
