// What an instruction computes, as text without names: equal texts mean equal computations on equal shapes.
#pragma once

#include <string>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Opcode, attributes, called computations and the shapes of operands and result. Metadata, sharding and
// configurations are left out.
std::string CanonicalText(const Instruction* i);

}  // namespace kiln
