// Elements of one or two bytes out of a short table, at places that are computed: a core gathers words, so LLVM's
// vectoriser reads elements one by one. The word that holds the element is read instead, and the element shifted out
// of it; words of a short table are then picked among registers (gathers.h).
#pragma once

#include "codegen/llvm/cpu_level.h"
#include "llvm/IR/PassManager.h"

namespace kiln {

// For innermost parallel loops, before they become vectors. Nothing outside the table is read.
struct WordsOfNarrowTables : llvm::PassInfoMixin<WordsOfNarrowTables> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& fam);
};

}  // namespace kiln
