// Operations on f16 that LLVM makes of ones on f32, where no core that levels stand for has them: comparisons, choices,
// magnitudes and roundings. Left as they are, loops around them stay scalar or are taken apart by lanes.
#pragma once

#include "llvm/IR/PassManager.h"

namespace kiln {

// Comparisons and roundings of halves become ones of floats, choices and magnitudes ones of integers.
struct WidenHalves : llvm::PassInfoMixin<WidenHalves> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager&);
  static bool isRequired() { return true; }
};

}  // namespace kiln
