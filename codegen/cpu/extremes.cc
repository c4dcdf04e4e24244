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
  // NaN of one sign is above all already, that of the other below the last number. A comparison of floats would be done
  // in f16 where that is what was loaded, one element at a time.
  const bool wide = key_ == PrimitiveType::S64;
  llvm::Value* last = llvm::ConstantInt::get(type, wide ? 0x800fffffffffffff : 0x807fffff);
  llvm::Value* nan = llvm::ConstantInt::get(type, wide ? 0x7ff8000000000000 : 0x7fc00000);
  return {ir.b.CreateSelect(ir.b.CreateICmpSLT(key, last), nan, key)};
}

Val ExtremeKeys::Decode(Ir& ir, const Val& key) const {
  llvm::Type* type = ir.RegType(key_ == PrimitiveType::S64 ? PrimitiveType::F64 : PrimitiveType::F32);
  return {ir.b.CreateBitCast(Turn(ir, minimum_ ? ir.b.CreateNot(key.re) : key.re), type)};
}

Val ExtremeKeys::Combine(Ir& ir, const Val& a, const Val& b) const {
  return {ir.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a.re, b.re)};
}

}  // namespace kiln::cpu
