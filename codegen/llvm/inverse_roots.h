// Inverse square roots of f32 from the estimate that AVX-512 has an instruction for: a division and a root take the
// divider 20 cycles a vector, the estimate and one step of Newton's method 7.
//
// Guarantees: within 1 unit in the last place; zeros give infinities of their sign, infinity zero, NaN and what is
// below
//   zero NaN; subnormal numbers are what the machine's mode makes of them. Scalar and vector code give the same bits.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace kiln {

// 1 / sqrt(x) of an f32, marked for the rewrite below.
llvm::Value* EstimatedInverseRoot(llvm::IRBuilder<>& b, llvm::Value* x);

// After LLVM's passes, which know what a division and a root cost and make vectors of them.
void RewriteInverseRoots(llvm::Function& f);

}  // namespace kiln
