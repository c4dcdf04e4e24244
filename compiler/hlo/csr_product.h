// cpu_csr_sparse_dense_ffi(data, row starts, columns, dense): the custom call that is JAX's product of a sparse matrix
// in compressed rows with a dense vector or matrix. Entry k of row r, starts[r] <= k < starts[r + 1], adds data[k] *
// dense[columns[k]] to row r of the result; entries behind the last row are padding.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether `i` is such a call, with operands that fit.
bool IsCsrProduct(const Instruction* i);

}  // namespace kiln
