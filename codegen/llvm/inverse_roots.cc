#include "codegen/llvm/inverse_roots.h"

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

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

// Powers of x from an estimate y of its inverse root, with x y^2 = 1 - e; the terms in e^3 are below 2^-37.
class FromEstimate {
 public:
  FromEstimate(llvm::IRBuilder<>& b, llvm::Value* x) : b_(b), x_(x), type_(x->getType()), y_(Estimate(b, x)) {}

  // y (1 + e / 2 + 3 e^2 / 8 + ...). Of zeros and of infinity the estimate is the result, and e is a NaN.
  llvm::Value* InverseRoot() {
    llvm::Value* e = Fused(b_.CreateFNeg(b_.CreateFMul(x_, y_)), y_, Number(1));
    llvm::Value* better = Fused(b_.CreateFMul(y_, e), Fused(e, Number(0.375), Number(0.5)), y_);
    return b_.CreateSelect(b_.CreateFCmpORD(e, e), better, y_);
  }

  // y^3 (1 + 3 e / 2 + 15 e^2 / 8 + ...), with the square of y as it was rounded in both. What is added to the cube is
  // multiplied by y last: a small number times e would be flushed.
  llvm::Value* Cube() {
    llvm::Value *square = b_.CreateFMul(y_, y_), *cube = b_.CreateFMul(square, y_);
    llvm::Value* e = Fused(b_.CreateFNeg(x_), square, Number(1));
    llvm::Value* step = b_.CreateFMul(b_.CreateFMul(square, e), Fused(e, Number(1.875), Number(1.5)));
    // Of zeros and of infinity y^3 is the result, of both signs' zeros infinity; what is too small is no negative zero.
    llvm::Value* power = b_.CreateSelect(b_.CreateFCmpORD(e, e), Fused(y_, step, cube), cube);
    return b_.CreateUnaryIntrinsic(in::fabs, power);
  }

 private:
  llvm::Value* Number(double v) { return llvm::ConstantFP::get(type_, v); }
  llvm::Value* Fused(llvm::Value* p, llvm::Value* q, llvm::Value* r) {
    return b_.CreateIntrinsic(in::fma, {type_}, {p, q, r});
  }

  llvm::IRBuilder<>& b_;
  llvm::Value* x_;
  llvm::Type* type_;
  llvm::Value* y_;
};

}  // namespace

llvm::Value* EstimatedInverseRoot(llvm::IRBuilder<>& b, llvm::Value* x) {
  return EstimatedQuotient(b, llvm::ConstantFP::get(x->getType(), 1), b.CreateUnaryIntrinsic(in::sqrt, x));
}

llvm::Value* EstimatedQuotient(llvm::IRBuilder<>& b, llvm::Value* p, llvm::Value* q) {
  const llvm::IRBuilder<>::FastMathFlagGuard kept(b);
  llvm::FastMathFlags mark;
  mark.setAllowReciprocal();
  b.setFastMathFlags(mark);
  return b.CreateFDiv(p, q);
}

void RewriteInverseRoots(llvm::Function& f) {
  using namespace llvm::PatternMatch;
  llvm::SmallVector<llvm::WeakTrackingVH> dead;
  for (llvm::BasicBlock& block : f)
    for (llvm::Instruction& i : block) {
      if (i.getOpcode() != llvm::Instruction::FDiv || !i.hasAllowReciprocal()) continue;
      i.setHasAllowReciprocal(false);  // what is left exact, LLVM leaves exact
      llvm::Value *x = nullptr, *divisor = i.getOperand(1);
      if (!match(i.getOperand(0), m_FPOne())) continue;
      llvm::IRBuilder<> b(&i);
      if (match(divisor, m_Intrinsic<in::sqrt>(m_Value(x))))
        i.replaceAllUsesWith(FromEstimate(b, x).InverseRoot());
      else if (match(divisor, m_c_FMul(m_Intrinsic<in::sqrt>(m_Value(x)), m_Deferred(x))))
        i.replaceAllUsesWith(FromEstimate(b, x).Cube());
      else
        continue;
      dead.push_back(&i);
    }
  llvm::RecursivelyDeleteTriviallyDeadInstructions(dead);
}

}  // namespace kiln
