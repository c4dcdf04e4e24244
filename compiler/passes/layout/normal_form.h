// Operations over arrays in their physical shapes (compiler/hlo/physical_shape.h): for layout-normalization.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// The row-major value that lies where `x` lies: `x` itself, what `x` is a bitcast of, or a bitcast of `x`, which may be
// new.
Instruction* NormalOf(Instruction* x);

// The operation of `i` over the normal values of its operands, whose result lies as that of `i` does; null if the
// operation, or its layouts, have no such form. May leave bitcasts behind that nobody uses.
Instruction* NormalForm(Instruction* i);

}  // namespace kiln
