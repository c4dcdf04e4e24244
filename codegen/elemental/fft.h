// Fourier transforms by the kernel library: how the lines of each axis are transformed, and their tables.
#pragma once

#include <vector>

#include "codegen/elemental/library.h"

namespace kiln {

// One axis of a transform: lines that do not depend on each other.
struct FftAxis {
  enum Place { kOperand, kHalf, kResult } from, to;  // kHalf: the half spectrum between the axes of a real result
  int64_t lines, n, inner;                           // elements of a line are `inner` apart
  int kind;                                          // 0: complex to complex, 1: from real, 2: to real
};

// How a worker transforms its lines: several in the lanes of vectors or one by one; one as it is or, with `rows`, as a
// matrix. A matrix of more than n numbers is a convolution's, for lengths with a large prime factor; in lanes it has
// one row.
struct FftPlan {
  bool in_vectors = false;
  int64_t rows = 0, columns = 0;
  int64_t work_bytes = 0;
};
// For a CPU core, which has caches and vectors.
FftPlan PlanFftLines(const FftAxis& axis, PrimitiveType component);
// For a thread of a GPU.
FftPlan PlanFftThread(const FftAxis& axis, PrimitiveType component);

// A table of exp(-2 pi i k / n) for k below n, real and imaginary part in turn, of component type `t`.
llvm::Value* FftRoots(Ir& ir, int64_t n, PrimitiveType t);
// In the order in which they are transformed.
std::vector<FftAxis> FftAxes(const Instruction* i);
// Bytes that the half spectrum takes (0: there is none).
int64_t FftHalfBytes(const Instruction* i);
// Transforms lines [first, last); of real ones `first` is even. `work` is aligned to a vector.
void EmitFftLines(Ir& ir, const Instruction* i, const FftAxis& axis, const FftPlan& plan, llvm::Value* from,
                  llvm::Value* to, llvm::Value* work, llvm::Value* first, llvm::Value* last);

}  // namespace kiln
