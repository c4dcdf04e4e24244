#include "codegen/elemental/sort_rows.h"

#include "codegen/elemental/element.h"

namespace kiln {
namespace {

llvm::Constant* SignBit(llvm::Type* word) {
  return llvm::ConstantInt::get(word, llvm::APInt::getSignMask(word->getIntegerBitWidth()));
}

// The parameter, or one of its elements in the place of others: of zeros, of NaNs.
bool IsParameter(const Instruction* i, int depth = 0) {
  constexpr int kDeepest = 8;
  if (i->Is(Opcode::Parameter)) return true;
  if (!i->Is(Opcode::Select) || depth > kDeepest) return false;
  const Instruction *yes = i->operand(1), *no = i->operand(2);
  return (yes->Is(Opcode::Constant) && IsParameter(no, depth + 1)) ||
         (no->Is(Opcode::Constant) && IsParameter(yes, depth + 1));
}

}  // namespace

SortRows::SortRows(const Instruction* sort) {
  const Shape& s = sort->operand(0)->shape();
  if (s.rank() == 0) return;
  const int64_t dim = sort->attrs().dimensions ? (*sort->attrs().dimensions)[0] : s.rank() - 1;
  n = s.dim(dim);
  for (int64_t d = 0; d < s.rank(); ++d) {
    if (d < dim) outer *= s.dim(d);
    if (d > dim) inner *= s.dim(d);
  }
}

llvm::Value* SortRows::Begin(Ir& ir, llvm::Value* row) const {
  if (inner == 1) return ir.Mul(row, n);
  if (outer == 1) return row;
  return ir.Add(ir.Mul(ir.b.CreateUDiv(row, ir.I64(inner)), n * inner), ir.b.CreateURem(row, ir.I64(inner)));
}

int KeyBits(const SortKey& key) {
  const PrimitiveType t = key.value->shape().type();
  if (!IsFloat(t)) return InfoOf(t).bits;
  return t == PrimitiveType::F64 ? 64 : 32;  // narrow floats are computed with as f32
}

bool MayBeUnordered(const SortKey& key) { return IsFloat(key.value->shape().type()) && !key.total; }

absl::StatusOr<llvm::Value*> EmitKey(Ir& ir, const SortKey& key, const Val& element, llvm::Value* unordered) {
  llvm::IRBuilder<>& b = ir.b;
  ElementEmitter e(ir, {});
  e.Preset(key.parameter, element);
  ASSIGN_OR_RETURN(Val value, e.Emit(key.value, Index{}));
  const PrimitiveType t = key.value->shape().type();
  llvm::Type* word = b.getIntNTy(static_cast<unsigned>(KeyBits(key)));
  llvm::Value* x = value.re;
  if (IsFloat(t)) {
    if (!key.total) {
      if (unordered)
        b.CreateStore(b.CreateOr(b.CreateLoad(b.getInt1Ty(), unordered), b.CreateFCmpUNO(x, x)), unordered);
      x = b.CreateFAdd(x, llvm::ConstantFP::get(x->getType(), 0));  // one zero
    }
    x = b.CreateBitCast(x, word);
    llvm::Value* negative = b.CreateAShr(x, word->getIntegerBitWidth() - 1);
    x = b.CreateXor(x, b.CreateOr(negative, SignBit(word)));
  } else if (IsSigned(t)) {
    x = b.CreateXor(x, SignBit(word));
  }
  return key.descending ? b.CreateNot(x) : x;
}

bool KeyIsElement(const SortKey& key) {
  const PrimitiveType t = key.value->shape().type();
  if (key.parameter->shape().type() != t) return false;
  return t == PrimitiveType::F32 || t == PrimitiveType::F64
             ? IsParameter(key.value)
             : IsIntegral(t) && InfoOf(t).bits >= 8 && key.value->Is(Opcode::Parameter);
}

llvm::Value* ElementOfKey(Ir& ir, const SortKey& key, llvm::Value* word) {
  const PrimitiveType t = key.value->shape().type();
  llvm::IRBuilder<>& b = ir.b;
  llvm::Value* x = b.CreateTrunc(word, b.getIntNTy(static_cast<unsigned>(KeyBits(key))));
  if (key.descending) x = b.CreateNot(x);
  llvm::Constant* sign = SignBit(x->getType());
  if (IsFloat(t)) {
    llvm::Value* negative = b.CreateNot(b.CreateAShr(x, x->getType()->getIntegerBitWidth() - 1));
    return b.CreateXor(x, b.CreateOr(negative, sign));
  }
  return IsSigned(t) ? b.CreateXor(x, sign) : x;
}

bool IsPlaces(const Instruction* sort, size_t k) {
  const Instruction* o = sort->operand(static_cast<int64_t>(k));
  if (o->Is(Opcode::Fusion)) o = (*o->attrs().calls)->root();
  const auto& dimensions = sort->attrs().dimensions;
  return o->Is(Opcode::Iota) && IsIntegral(o->shape().type()) && InfoOf(o->shape().type()).bits >= 32 && dimensions &&
         *o->attrs().iota_dimension == (*dimensions)[0];
}

bool KeysMayMeet(const SortKey& key) {
  return IsFloat(key.value->shape().type()) && (!key.total || !key.value->Is(Opcode::Parameter));
}

}  // namespace kiln
