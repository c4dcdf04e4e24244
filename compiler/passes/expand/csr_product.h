// A product of a sparse matrix, hlo/csr_product.h, as operations that have kernels.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Rows of the dense operand that are gathered, scaled and added where they belong, in the order of the entries.
Instruction* CsrProductOf(Instruction* i);

}  // namespace kiln
