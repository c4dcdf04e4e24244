// Bytes of truths that are added up: whether a byte is not 0, as the number 0 or 1, is the lesser of it and 1. LLVM
// makes masks of the bytes and bytes of the masks, which takes three instructions where there are registers of masks.
#pragma once

#include "llvm/IR/Function.h"

namespace kiln {

// After LLVM's passes, which turn the minimum into the comparison.
void RewriteTruths(llvm::Function& f);

}  // namespace kiln
