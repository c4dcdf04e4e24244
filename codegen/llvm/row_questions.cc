#include "codegen/llvm/row_questions.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimpleLoopUnswitch.h"

namespace kiln {
namespace {

// Loops around those along rows stay as they are: their code would double once more for little.
struct OfInnermostLoops : llvm::PassInfoMixin<OfInnermostLoops> {
  llvm::PreservedAnalyses run(llvm::Loop& l, llvm::LoopAnalysisManager& lam, llvm::LoopStandardAnalysisResults& known,
                              llvm::LPMUpdater& updater) {
    if (!l.isInnermost()) return llvm::PreservedAnalyses::all();
    return llvm::SimpleLoopUnswitchPass(/*NonTrivial=*/true).run(l, lam, known, updater);
  }
};

}  // namespace

llvm::PreservedAnalyses AskRowsFirst::run(llvm::Function& f, llvm::FunctionAnalysisManager& fam) {
  if (!f.hasFnAttribute(kAsksOfRows)) return llvm::PreservedAnalyses::all();
  return llvm::createFunctionToLoopPassAdaptor(OfInnermostLoops(), /*UseMemorySSA=*/true).run(f, fam);
}

}  // namespace kiln
