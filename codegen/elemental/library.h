// Kernels that call an algorithm of the kernel library: sort, top-k, FFT, Cholesky, triangular solve, random bits,
// LAPACK. The code is serial; the caller says what may lie on the stack.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/llvm/ir.h"

namespace kiln {

// The arrays of one kernel, while it is emitted.
struct Body {
  Ir& ir;
  const Instruction* i;
  std::vector<llvm::Value*> operands, results;
  llvm::Value* scratch;
  llvm::Value *begin, *end;  // the units to compute
};

// Returns the number of units. `stack_bytes`: working memory up to this lies on the stack, more in the body's scratch.
absl::StatusOr<int64_t> EmitLibrary(Body& body, int64_t stack_bytes);
// Of a sort: the same, and the bytes that one unit of it works in. A unit is a row where that lies on the stack.
absl::StatusOr<int64_t> EmitSortRows(Body& body, int64_t stack_bytes);
int64_t SortScratchBytes(const Instruction* i);

// One axis of a transform: lines that do not depend on each other.
struct FftAxis {
  enum Place { kOperand, kHalf, kResult } from, to;  // kHalf: the half spectrum between the axes of a real result
  int64_t lines, n, inner;                           // elements of a line are `inner` apart
  int kind;                                          // 0: complex to complex, 1: from real, 2: to real
};
// A table of exp(-2 pi i k / n) for k below n, real and imaginary part in turn, of component type `t`.
llvm::Value* FftRoots(Ir& ir, int64_t n, PrimitiveType t);
// In the order in which they are transformed.
std::vector<FftAxis> FftAxes(const Instruction* i);
// Bytes that one worker needs, and that the half spectrum takes (0: there is none).
int64_t FftWorkBytes(const Instruction* i);
int64_t FftHalfBytes(const Instruction* i);
// Transforms lines [first, last); of real ones `first` is even. `in_vectors`: several lines at once, in the lanes of
// vectors, which takes more memory.
void EmitFftLines(Ir& ir, const Instruction* i, const FftAxis& axis, llvm::Value* from, llvm::Value* to,
                  llvm::Value* work, llvm::Value* first, llvm::Value* last, bool in_vectors = false);

// Bytes of scratch that the kernel of `i` needs.
int64_t LibraryScratchBytes(const Instruction* i, int64_t stack_bytes);

}  // namespace kiln
