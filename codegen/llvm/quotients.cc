#include "codegen/llvm/quotients.h"

#include <cmath>

#include "llvm/IR/Intrinsics.h"

namespace kiln {
namespace {

// 64 bits, by estimates that are never too large: a quotient, then that of what it leaves, then at most one.
llvm::Value* UnsignedQuotient(llvm::IRBuilder<>& b, llvm::Value* p, llvm::Value* q) {
  llvm::Type *whole = p->getType(), *wide = b.getDoubleTy();
  // Five roundings, of 2^-53 each, could make an estimate too large; the divisor's inverse is lowered by more.
  llvm::Value* inverse = b.CreateFDiv(llvm::ConstantFP::get(wide, 1 - std::ldexp(1.0, -50)), b.CreateUIToFP(q, wide));
  const auto estimate = [&](llvm::Value* of) {
    return b.CreateFPToUI(b.CreateFMul(b.CreateUIToFP(of, wide), inverse), whole);
  };
  // It leaves less than 2^-49 of the dividend and one divisor; the second less than two divisors.
  llvm::Value* first = estimate(p);
  llvm::Value* left = b.CreateSub(p, b.CreateMul(first, q));
  llvm::Value* second = estimate(left);
  llvm::Value* last = b.CreateSub(left, b.CreateMul(second, q));
  return b.CreateAdd(b.CreateAdd(first, second), b.CreateZExt(b.CreateICmpUGE(last, q), whole));
}

llvm::Value* QuotientOfEstimates(llvm::IRBuilder<>& b, llvm::Value* p, llvm::Value* q, bool has_sign) {
  if (!has_sign) return UnsignedQuotient(b, p, q);
  // The magnitude of the least number is right as an unsigned one.
  const auto magnitude = [&](llvm::Value* v) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, v, b.getFalse()); };
  llvm::Value* r = UnsignedQuotient(b, magnitude(p), magnitude(q));
  return b.CreateSelect(b.CreateICmpSLT(b.CreateXor(p, q), llvm::ConstantInt::get(p->getType(), 0)), b.CreateNeg(r), r);
}

// Up to 32 bits, by a float that has twice their digits: the exact quotient differs from the next whole number by more
// than half a last place.
llvm::Value* QuotientOfWider(llvm::IRBuilder<>& b, llvm::Value* p, llvm::Value* q, bool has_sign) {
  llvm::Type* whole = p->getType();
  llvm::Type* wide = whole->getIntegerBitWidth() > 16 ? b.getDoubleTy() : b.getFloatTy();
  if (!has_sign) return b.CreateFPToUI(b.CreateFDiv(b.CreateUIToFP(p, wide), b.CreateUIToFP(q, wide)), whole);
  return b.CreateFPToSI(b.CreateFDiv(b.CreateSIToFP(p, wide), b.CreateSIToFP(q, wide)), whole);
}

}  // namespace

llvm::Value* QuotientByFloats(llvm::IRBuilder<>& b, llvm::Value* p, llvm::Value* q, bool has_sign) {
  const llvm::IRBuilder<>::FastMathFlagGuard exact(b);
  b.setFastMathFlags({});
  return p->getType()->getIntegerBitWidth() > 32 ? QuotientOfEstimates(b, p, q, has_sign)
                                                 : QuotientOfWider(b, p, q, has_sign);
}

}  // namespace kiln
