// One output of a convolution in NHWC order, as convolution-canonicalization leaves it: a loop over its window.
#pragma once

#include <functional>
#include <vector>

#include "codegen/elemental/element.h"

namespace kiln {

// The element of the input (0) or the kernel (1) at an index, which lies inside.
using ReadOperand = std::function<absl::StatusOr<Val>(int64_t operand, const Index& index)>;

// Convolution `i` at output `at`. Sums of narrow floats are f32 until they are whole.
absl::StatusOr<Val> EmitConvolutionAt(Ir& ir, const Instruction* i, const std::vector<llvm::Value*>& at,
                                      const ReadOperand& read);

}  // namespace kiln
