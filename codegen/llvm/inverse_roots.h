// Inverse square roots of f32 from the estimate that AVX-512 has an instruction for: a division and a root take the
// divider 20 cycles a vector, the estimate and one step of Newton's method 7.
//
// Guarantees: inverse roots are within 1 unit in the last place; zeros give infinities of their sign, infinity zero,
// NaN
//   and what is below zero NaN; subnormal numbers are what the machine's mode makes of them. Powers of -3/2 are within
//   2 units, where a root, a product and a division are within 3. Scalar and vector code give the same bits.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace kiln {

// 1 / sqrt(x) of an f32, marked for the rewrite below.
llvm::Value* EstimatedInverseRoot(llvm::IRBuilder<>& b, llvm::Value* x);
// p / q of f32, marked likewise: 1 / (x * sqrt(x)) comes of the estimate, too, all else stays.
llvm::Value* EstimatedQuotient(llvm::IRBuilder<>& b, llvm::Value* p, llvm::Value* q);

// After LLVM's passes, which know what a division and a root cost and make vectors of them.
void RewriteInverseRoots(llvm::Function& f);

}  // namespace kiln
