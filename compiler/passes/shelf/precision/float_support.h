// Which narrow float types an operation of the CPU target reads and writes as they are.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Operations that move bits work on every type; dots and convolutions multiply bf16 and f16 themselves; the element
// emitter widens and rounds inside every elementwise operation, so that it takes any type too. What is left computes in
// a wider type: sorts compare, FFTs and factorisations have kernels of f32 and f64 only.
inline bool ComputesNarrow(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Fft:
    case Opcode::Cholesky:
    case Opcode::TriangularSolve:
    case Opcode::BatchNormTraining:
    case Opcode::BatchNormInference:
    case Opcode::BatchNormGrad:
    case Opcode::Power:
    case Opcode::Atan2:
    case Opcode::Tan:
    case Opcode::Exponential:
    case Opcode::ExponentialMinusOne:
    case Opcode::Log:
    case Opcode::LogPlusOne:
    case Opcode::Sine:
    case Opcode::Cosine:
    case Opcode::Tanh:
    case Opcode::Logistic:
    case Opcode::Cbrt:
    case Opcode::Erf:
      return false;
    default:
      return true;
  }
}

}  // namespace kiln
