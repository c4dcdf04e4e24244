// Operations that compute nothing: slices, transposes, paddings and the like, one element of one operation.
#pragma once

#include "codegen/elemental/element.h"

namespace kiln {

// Whether EmitMovement knows `op`.
bool IsMovement(Opcode op);
// The element of `i` at `index`, from elements of its operands.
absl::StatusOr<Val> EmitMovement(ElementEmitter& elements, const Instruction* i, const Index& index);

}  // namespace kiln
