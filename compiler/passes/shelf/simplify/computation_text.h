// A computation as text that is the same for two that differ in names only.
#pragma once

#include <string>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Called computations appear by name: unify callees first.
std::string ComputationText(const Computation* c);
// The same of one instruction without its name and operands.
std::string InstructionText(const Instruction* i);

}  // namespace kiln
