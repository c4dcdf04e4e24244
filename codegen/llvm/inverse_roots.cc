#include "codegen/llvm/inverse_roots.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/PatternMatch.h"

namespace kiln {
namespace {

namespace in = llvm::Intrinsic;

// To a relative error of 2^-14. `x` has 4, 8 or 16 lanes.
llvm::Value* EstimateOfRegister(llvm::IRBuilder<>& b, llvm::Value* x) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  const in::ID id = lanes == 16  ? in::x86_avx512_rsqrt14_ps_512
                    : lanes == 8 ? in::x86_avx512_rsqrt14_ps_256
                                 : in::x86_avx512_rsqrt14_ps_128;
  llvm::Value* all = llvm::ConstantInt::getAllOnesValue(b.getIntNTy(std::max(lanes, 8U)));
  return b.CreateIntrinsic(id, {}, {x, llvm::PoisonValue::get(x->getType()), all});
}

llvm::Value* Estimate(llvm::IRBuilder<>& b, llvm::Value* x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!vector) {
    llvm::Value* four = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getFloatTy(), 4));
    return b.CreateExtractElement(EstimateOfRegister(b, b.CreateInsertElement(four, x, b.getInt32(0))), b.getInt32(0));
  }
  const unsigned lanes = vector->getNumElements(), width = lanes > 8 ? 16 : lanes > 4 ? 8 : 4;
  std::vector<llvm::Value*> pieces;
  for (unsigned at = 0; at < lanes; at += width) {
    std::vector<int> mask(width, llvm::PoisonMaskElem);
    for (unsigned k = 0; k < width && at + k < lanes; ++k) mask[k] = static_cast<int>(at + k);
    pieces.push_back(EstimateOfRegister(b, b.CreateShuffleVector(x, mask)));
  }
  llvm::Value* all = llvm::concatenateVectors(b, pieces);
  std::vector<int> mask(lanes);
  for (unsigned k = 0; k < lanes; ++k) mask[k] = static_cast<int>(k);
  return b.CreateShuffleVector(all, mask);
}

// With x y^2 = 1 - e, the root is y (1 + e / 2 + 3 e^2 / 8 + ...); the next term is below 2^-38. Of zeros and of
// infinity the estimate is the result, and e is a NaN.
llvm::Value* InverseRoot(llvm::IRBuilder<>& b, llvm::Value* x) {
  llvm::Type* type = x->getType();
  const auto fused = [&](llvm::Value* p, llvm::Value* q, llvm::Value* r) {
    return b.CreateIntrinsic(in::fma, {type}, {p, q, r});
  };
  const auto number = [&](double v) { return llvm::ConstantFP::get(type, v); };
  llvm::Value* y = Estimate(b, x);
  llvm::Value* e = fused(b.CreateFNeg(b.CreateFMul(x, y)), y, number(1));
  llvm::Value* better = fused(b.CreateFMul(y, e), fused(e, number(0.375), number(0.5)), y);
  return b.CreateSelect(b.CreateFCmpORD(e, e), better, y);
}

}  // namespace

llvm::Value* EstimatedInverseRoot(llvm::IRBuilder<>& b, llvm::Value* x) {
  const llvm::IRBuilder<>::FastMathFlagGuard kept(b);
  b.setFastMathFlags({});
  llvm::Value* root = b.CreateUnaryIntrinsic(in::sqrt, x);
  llvm::FastMathFlags mark;
  mark.setAllowReciprocal();
  b.setFastMathFlags(mark);
  return b.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1), root);
}

void RewriteInverseRoots(llvm::Function& f) {
  using namespace llvm::PatternMatch;
  for (llvm::BasicBlock& block : f)
    for (llvm::Instruction& i : llvm::make_early_inc_range(block)) {
      if (i.getOpcode() != llvm::Instruction::FDiv || !i.hasAllowReciprocal()) continue;
      i.setHasAllowReciprocal(false);  // what is left exact, LLVM leaves exact
      llvm::Value* x = nullptr;
      if (!match(&i, m_FDiv(m_FPOne(), m_Intrinsic<in::sqrt>(m_Value(x))))) continue;
      llvm::IRBuilder<> b(&i);
      i.replaceAllUsesWith(InverseRoot(b, x));
      auto* root = llvm::cast<llvm::Instruction>(i.getOperand(1));
      i.eraseFromParent();
      if (root->use_empty()) root->eraseFromParent();
    }
}

}  // namespace kiln
