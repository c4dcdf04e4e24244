// What an instruction computes, as text without names: equal texts mean equal computations on equal shapes.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// Opcode, attributes, called computations and the shapes of operands and result. Metadata, sharding and
// configurations are left out.
std::string CanonicalText(const Instruction* i);

// The part of it that operands have none in, with called computations and constants as the functions write them.
std::string OwnText(const Instruction* i, absl::FunctionRef<std::string(const Computation*)> computation,
                    absl::FunctionRef<std::string(const Literal&)> constant);

}  // namespace kiln
