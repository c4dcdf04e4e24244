// Which narrow float types an operation of the CPU target reads and writes as they are.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Operations that move bits work on every type; dots and convolutions multiply bf16 and f16 themselves; the element
// emitter widens and rounds inside every elementwise operation, so that it takes any type too. What is left computes in
// a wider type: elementary functions, and FFTs and factorisations, which have kernels of f32 and f64 only.
inline bool ComputesNarrow(const Instruction* i) {
  for (const Opcode op : {Opcode::BatchNormGrad, Opcode::BatchNormInference, Opcode::BatchNormTraining,
                          Opcode::Cholesky, Opcode::Fft, Opcode::TriangularSolve})
    if (i->Is(op)) return false;
  return !i->HasTrait(Transcendental);
}

}  // namespace kiln
