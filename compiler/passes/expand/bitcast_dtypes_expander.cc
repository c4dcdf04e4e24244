// bitcast-convert from or to elements narrower than a byte, which lie in bytes of their own, as shifts.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

PrimitiveType Unsigned(int bits) {
  return bits <= 8    ? PrimitiveType::U8
         : bits <= 16 ? PrimitiveType::U16
         : bits <= 32 ? PrimitiveType::U32
                      : PrimitiveType::U64;
}

Expr Same(Expr x, PrimitiveType t) {
  return x.computation()->Add(Opcode::BitcastConvert, Shape::Array(t, x.shape().dims()), {x.get()});
}

// Integers that hold the bits of `x`, its own width at the bottom.
Expr Bits(Expr x, PrimitiveType t) {
  const int width = InfoOf(x.type()).bits;
  Expr raw = x;
  if (IsFloat(x.type())) raw = Same(x, width == 4 ? PrimitiveType::U4 : Unsigned(width));
  raw = ConvertTo(t, raw);
  return width < InfoOf(t).bits ? raw & raw.Like(static_cast<double>((1 << width) - 1)) : raw;
}

// The element whose bits `raw` holds at its bottom.
Expr FromBits(Expr raw, PrimitiveType t) {
  if (t == PrimitiveType::Pred) return CompareExpr(Direction::NE, raw & raw.Like(1), raw.Like(0));
  if (IsIntegral(t)) return ConvertTo(t, raw);
  return Same(ConvertTo(InfoOf(t).bits == 4 ? PrimitiveType::U4 : Unsigned(InfoOf(t).bits), raw), t);
}

Instruction* Expand(Instruction* i) {
  Expr x = i->operand(0);
  const PrimitiveType from_type = x.type(), to_type = i->shape().type();
  const int from = InfoOf(from_type).bits, to = InfoOf(to_type).bits;
  const PrimitiveType t = Unsigned(std::max(from, to));
  Computation* c = i->parent();
  if (from == to) return FromBits(Bits(x, t), to_type).get();
  if (from < to) {  // the last dimension's elements, the lowest first
    const int64_t last = x.shape().rank() - 1;
    Expr shift = IotaOf(c, t, x.shape().dims(), last) * static_cast<double>(from);
    Expr placed = Binary(Opcode::ShiftLeft, Bits(x, t), shift);
    Expr joined =
        ReduceOf(placed, c->AddConstant(Literal::Of(t, 0)), {last}, ScalarFunction(c->module(), Opcode::Or, t));
    return FromBits(joined, to_type).get();
  }
  const Ints dims = i->shape().dims();
  Ints map;
  for (int64_t d = 0; d < x.shape().rank(); ++d) map.push_back(d);
  Expr wide = BroadcastTo(Bits(x, t), dims, map);
  Expr shift = IotaOf(c, t, dims, static_cast<int64_t>(dims.size()) - 1) * static_cast<double>(to);
  Expr part = Binary(Opcode::ShiftRightLogical, wide, shift);
  return FromBits(part & part.Like(static_cast<double>((1 << to) - 1)), to_type).get();
}

}  // namespace

absl::StatusOr<bool> BitcastDtypesExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        if (!i->Is(Opcode::BitcastConvert)) return false;
        const PrimitiveType from = i->operand(0)->shape().type(), to = i->shape().type();
        if (InfoOf(from).bits == InfoOf(to).bits)
          return InfoOf(to).bits < 8 && from != to && !IsFloat(from) && !IsFloat(to);
        return InfoOf(from).bits < 8 || InfoOf(to).bits < 8;
      },
      Expand);
}

}  // namespace kiln
