#include "codegen/llvm/truths.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

namespace kiln {

void RewriteTruths(llvm::Function& f) {
  using namespace llvm::PatternMatch;
  llvm::SmallVector<llvm::WeakTrackingVH> dead;
  for (llvm::BasicBlock& block : f)
    for (llvm::Instruction& i : block) {
      llvm::ICmpInst::Predicate predicate;
      llvm::Value* byte = nullptr;
      if (!i.getType()->isVectorTy() || !match(&i, m_ZExt(m_ICmp(predicate, m_Value(byte), m_Zero()))) ||
          predicate != llvm::ICmpInst::ICMP_NE || byte->getType() != i.getType() || !i.getType()->isIntOrIntVectorTy(8))
        continue;
      llvm::IRBuilder<> b(&i);
      i.replaceAllUsesWith(
          b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, byte, llvm::ConstantInt::get(i.getType(), 1)));
      dead.push_back(&i);
    }
  llvm::RecursivelyDeleteTriviallyDeadInstructions(dead);
}

}  // namespace kiln
