#include "codegen/cpu/extremes.h"

#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

// Bits of a negative number but the sign turned round, which is its own inverse: sign and magnitude become an integer.
llvm::Value* Turn(Ir& ir, llvm::Value* bits) {
  const unsigned width = bits->getType()->getIntegerBitWidth();
  return ir.b.CreateXor(bits, ir.b.CreateLShr(ir.b.CreateAShr(bits, width - 1), 1));
}

}  // namespace

ExtremeKeys::ExtremeKeys(const Computation& reducer) {
  const Instruction* r = reducer.root();
  if (!(r->Is(Opcode::Maximum) || r->Is(Opcode::Minimum)) || !IsFloat(r->shape().type()) || r->shape().rank() != 0 ||
      !r->operand(0)->Is(Opcode::Parameter) || !r->operand(1)->Is(Opcode::Parameter) || r->operand(0) == r->operand(1))
    return;
  apply_ = true;
  minimum_ = r->Is(Opcode::Minimum);
  key_ = r->shape().type() == PrimitiveType::F64 ? PrimitiveType::S64 : PrimitiveType::S32;
}

Val ExtremeKeys::Encode(Ir& ir, const Val& number) const {
  llvm::Type* type = ir.RegType(key_);
  llvm::Value* key = Turn(ir, ir.b.CreateBitCast(number.re, type));
  if (minimum_) key = ir.b.CreateNot(key);
  // Counted from the lowest number's key on, NaN of the sign that would be below it is above all, as that of the other
  // is already. A comparison of floats would be done in f16 where that is what was loaded, one element at a time.
  return {ir.b.CreateSub(key, Lowest(ir))};
}

Val ExtremeKeys::Decode(Ir& ir, const Val& key) const {
  llvm::Type* type = ir.RegType(key_ == PrimitiveType::S64 ? PrimitiveType::F64 : PrimitiveType::F32);
  llvm::Value* turned = ir.b.CreateAdd(key.re, Lowest(ir));
  return {ir.b.CreateBitCast(Turn(ir, minimum_ ? ir.b.CreateNot(turned) : turned), type)};
}

// The key of the infinity that no number is beyond, as a signed integer.
llvm::Constant* ExtremeKeys::Lowest(Ir& ir) const {
  return llvm::ConstantInt::get(ir.RegType(key_), key_ == PrimitiveType::S64 ? 0x800fffffffffffff : 0x807fffff);
}

Val ExtremeKeys::Combine(Ir& ir, const Val& a, const Val& b) const {
  return {ir.b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, a.re, b.re)};
}

// A minimum is the maximum of numbers of the other sign.
llvm::Value* ExtremeKeys::Bits(Ir& ir, const Val& number) const {
  llvm::Type* type = ir.RegType(key_);
  llvm::Value* bits = ir.b.CreateBitCast(number.re, type);
  const auto sign = llvm::APInt::getSignMask(type->getIntegerBitWidth());
  return minimum_ ? ir.b.CreateXor(bits, llvm::ConstantInt::get(type, sign)) : bits;
}

// All bits of the mantissa: how many NaNs of one sign there are.
llvm::Constant* ExtremeKeys::Turned(Ir& ir) const {
  return llvm::ConstantInt::get(ir.RegType(key_), key_ == PrimitiveType::S64 ? 0x000fffffffffffff : 0x007fffff);
}

ExtremeKeys::Pair ExtremeKeys::First(Ir& ir, const Val& number) const {
  llvm::Value* bits = Bits(ir, number);
  return {bits, ir.b.CreateAdd(bits, Turned(ir))};
}

ExtremeKeys::Pair ExtremeKeys::Next(Ir& ir, const Pair& so_far, const Val& number) const {
  const Pair next = First(ir, number);
  return {ir.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, so_far.highest, next.highest),
          ir.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, so_far.least, next.least)};
}

Val ExtremeKeys::Result(Ir& ir, const Pair& all) const {
  llvm::Type* type = ir.RegType(key_);
  llvm::Value* negative = ir.b.CreateICmpSLT(all.highest, llvm::ConstantInt::get(type, 0));
  llvm::Value* bits = ir.Select(negative, ir.b.CreateSub(all.least, Turned(ir)), all.highest);
  // NaN of either sign is the result; what is turned round to the front is one of the negative sign.
  llvm::Value* nan = ir.b.CreateICmpULT(all.least, Turned(ir));
  bits = ir.Select(nan, ir.b.CreateSub(all.least, Turned(ir)), bits);
  if (minimum_) bits = Bits(ir, {bits});
  return {ir.b.CreateBitCast(bits, ir.RegType(key_ == PrimitiveType::S64 ? PrimitiveType::F64 : PrimitiveType::F32))};
}

Found Choose(Ir& ir, const Extremum& extremum, PrimitiveType t, const Found& so_far, const Found& next) {
  using P = llvm::CmpInst::Predicate;
  llvm::Value *a = so_far.value.re, *b = next.value.re;
  const bool up = extremum.greatest;
  const auto place = [&](llvm::Value* take) { return Val{ir.Select(take, next.place.re, so_far.place.re)}; };
  if (!IsFloat(t)) {
    const P beyond = up ? P::ICMP_SGT : P::ICMP_SLT;
    llvm::Value* take = ir.b.CreateICmp(IsSigned(t) ? beyond : llvm::ICmpInst::getUnsignedPredicate(beyond), b, a);
    return {{ir.Select(take, b, a)}, place(take)};
  }
  llvm::Value* number = ir.b.CreateFCmpORD(a, a);
  llvm::Value* take = ir.b.CreateAnd(number, ir.b.CreateFCmp(up ? P::FCMP_UGT : P::FCMP_ULT, b, a));
  llvm::Value* value = ir.Select(take, b, a);
  if (extremum.later_value) {
    llvm::Value* keep = ir.b.CreateFCmp(up ? P::FCMP_OGT : P::FCMP_OLT, a, b);
    value = ir.Select(number, ir.Select(keep, a, b), a);
  }
  return {{value}, place(take)};
}

}  // namespace kiln::cpu
