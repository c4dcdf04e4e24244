// Custom calls that front ends and other compilers use as names for operations of HLO: TopK, the functions of XLA's
// builder (xla_builder.math.Erf), and of JAX's calls of LAPACK those that solve by a triangle and that factorise as
// Cholesky's (lapack_<type>trsm_ffi, lapack_<type>potrf_ffi). The rest of LAPACK is in hlo/lapack.h.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether `i` is such a call, with operands that fit.
bool IsNamedOperation(const Instruction* i);

// What it computes from `operands`, which are in `c`, in the operations that it names.
Instruction* NamedOperationOf(const Instruction* call, Computation* c, const std::vector<Instruction*>& operands);

}  // namespace kiln
