// Kernels that call an algorithm of the kernel library: sort, top-k, FFT, Cholesky, triangular solve, random bits,
// LAPACK. The code of a unit is serial; the caller says what may lie on the stack.
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
  bool in_place = false;     // a result may lie where an operand does
};

// Returns the number of units. `stack_bytes`: working memory up to this lies on the stack, more in the body's scratch.
absl::StatusOr<int64_t> EmitLibrary(Body& body, int64_t stack_bytes);
// Of a sort: the same, and the bytes that one unit of it works in. A unit is a row where that lies on the stack.
absl::StatusOr<int64_t> EmitSortRows(Body& body, int64_t stack_bytes);
int64_t SortScratchBytes(const Instruction* i);
// Of a top-k, whose units are rows; its scratch lies on the stack, or else it is one unit.
absl::StatusOr<int64_t> EmitTopKRows(Body& body, int64_t stack_bytes);
int64_t TopKScratchBytes(const Instruction* i);

// Bytes of scratch that the kernel of `i` needs.
int64_t LibraryScratchBytes(const Instruction* i, int64_t stack_bytes);

}  // namespace kiln
