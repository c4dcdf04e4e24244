// Narrow elements that an element reads of its neighbours are read again by each. LLVM passes them on from an element
// to the next, which saves loops over elements a load; in vectors each then waits for the one before, and is put
// together of both by shuffles where a load would do. What is left behind whole vectors stays scalar besides.
#pragma once

#include "llvm/IR/PassManager.h"

namespace kiln {

// For innermost parallel loops, before they become vectors. Guarantees: only what was read is read, of arrays that
// nothing writes.
struct ReadNeighboursAgain : llvm::PassInfoMixin<ReadNeighboursAgain> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& fam);
};

}  // namespace kiln
