// Questions about rows, such as whether a padded array has an operand's row there, move out of the loops along rows:
// each answer gets a loop of its own, which LLVM makes vectors of. LLVM does so itself only where it is told that code
// may grow, so kernels say that they ask such questions (kAsksOfRows).
#pragma once

#include "llvm/IR/PassManager.h"

namespace kiln {

// Of functions whose innermost loops ask at each element what only differs from row to row.
inline constexpr char kAsksOfRows[] = "kiln-asks-of-rows";

struct AskRowsFirst : llvm::PassInfoMixin<AskRowsFirst> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& fam);
};

}  // namespace kiln
