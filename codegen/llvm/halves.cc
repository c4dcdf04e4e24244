#include "codegen/llvm/halves.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

namespace kiln {
namespace {

bool IsHalf(const llvm::Type* t) { return t->getScalarType()->isHalfTy(); }

bool IsRounding(llvm::Intrinsic::ID id) {
  namespace in = llvm::Intrinsic;
  return llvm::is_contained({in::floor, in::ceil, in::trunc, in::rint, in::nearbyint, in::round, in::roundeven}, id);
}

// What `i` gives, computed in another type; null: as it is.
llvm::Value* Widened(llvm::Instruction& i) {
  llvm::IRBuilder<> b(&i);
  const auto wide = [&](llvm::Value* v) { return b.CreateFPExt(v, v->getType()->getWithNewType(b.getFloatTy())); };
  if (auto* compare = llvm::dyn_cast<llvm::FCmpInst>(&i)) {
    if (!IsHalf(compare->getOperand(0)->getType())) return nullptr;
    return b.CreateFCmp(compare->getPredicate(), wide(compare->getOperand(0)), wide(compare->getOperand(1)));
  }
  if (!IsHalf(i.getType())) return nullptr;
  if (auto* choice = llvm::dyn_cast<llvm::SelectInst>(&i)) {
    llvm::Type* bits = i.getType()->getWithNewType(b.getInt16Ty());
    llvm::Value* chosen = b.CreateSelect(choice->getCondition(), b.CreateBitCast(choice->getTrueValue(), bits),
                                         b.CreateBitCast(choice->getFalseValue(), bits));
    return b.CreateBitCast(chosen, i.getType());
  }
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  if (!call) return nullptr;
  if (call->getIntrinsicID() == llvm::Intrinsic::fabs) {
    llvm::Type* bits = i.getType()->getWithNewType(b.getInt16Ty());
    llvm::Value* magnitude = b.CreateAnd(b.CreateBitCast(call->getArgOperand(0), bits), 0x7fff);
    return b.CreateBitCast(magnitude, i.getType());
  }
  if (!IsRounding(call->getIntrinsicID())) return nullptr;
  return b.CreateFPTrunc(b.CreateUnaryIntrinsic(call->getIntrinsicID(), wide(call->getArgOperand(0))), i.getType());
}

}  // namespace

llvm::PreservedAnalyses WidenHalves::run(llvm::Function& f, llvm::FunctionAnalysisManager&) {
  bool any = false;
  for (llvm::BasicBlock& block : f)
    for (llvm::Instruction& i : llvm::make_early_inc_range(block))
      if (llvm::Value* v = Widened(i)) {
        i.replaceAllUsesWith(v);
        i.eraseFromParent();
        any = true;
      }
  if (!any) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses kept;
  kept.preserveSet<llvm::CFGAnalyses>();
  return kept;
}

}  // namespace kiln
