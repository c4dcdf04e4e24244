// Fusions around products of kiln's own kernels: what the passes that make them share.
#pragma once

#include "compiler/hlo/instruction.h"
#include "compiler/pass/pass.h"

namespace kiln {

// A dot as dot-decomposer leaves it: two batched matrices, one contracting dimension each.
bool IsCanonicalProduct(const Instruction* i);
// A convolution that is computed as a product (tuning.h), in row-major layouts.
bool IsConvolutionAsProduct(const Instruction* i);

// One fusion of kind __triton_gemm around `product`, if there is something to take along: what follows it element by
// element, with the broadcasts that this reads, and what its operands are made of if that widens them from integers of
// at most 8 bits, or if the product is so small that another kernel would take longer. `only_widened`: nothing is done
// unless one of the two is so.
bool FuseAroundProduct(Instruction* product, PassContext& ctx, bool only_widened);

}  // namespace kiln
