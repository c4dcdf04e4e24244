// Comparisons of floats by total order become comparisons of integers: the bits, with the lower ones flipped if the
// sign is set, order as the numbers do.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

PrimitiveType SignedOfWidth(int64_t bits) {
  return bits == 8    ? PrimitiveType::S8
         : bits == 16 ? PrimitiveType::S16
         : bits == 32 ? PrimitiveType::S32
                      : PrimitiveType::S64;
}

Expr Ordered(Expr x, PrimitiveType t, int64_t bits) {
  Instruction* i = x.computation()->Add(Opcode::BitcastConvert, Shape::Array(t, x.shape().dims()), {x.get()});
  Expr low =
      BroadcastTo(IntegerIn(x.computation(), t, static_cast<int64_t>(~uint64_t{0} >> (65 - bits))), x.shape().dims());
  return SelectExpr(Expr(i) < 0.0, Binary(Opcode::Xor, i, low), i);
}

}  // namespace

absl::StatusOr<bool> ComparisonExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::Compare) && i->attrs().compare_type == CompareType::TOTALORDER &&
               IsFloat(i->operand(0)->shape().type()) && BitWidth(i->operand(0)->shape().type()) >= 8;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const int64_t bits = BitWidth(i->operand(0)->shape().type());
        const PrimitiveType t = SignedOfWidth(bits);
        Expr a = Ordered(i->operand(0), t, bits), b = Ordered(i->operand(1), t, bits);
        return CompareExpr(*i->attrs().direction, a, b).get();
      });
}

}  // namespace kiln
