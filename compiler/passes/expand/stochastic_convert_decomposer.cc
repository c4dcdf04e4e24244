// stochastic-convert as a comparison of random bits with the fraction that rounding would drop.
#include <algorithm>
#include <cmath>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

Instruction* Decompose(Instruction* i) {
  Expr x = i->operand(0), random = i->operand(1);
  const PrimitiveType wide =
      InfoOf(x.type()).bits > 32 || InfoOf(random.type()).bits > 32 ? PrimitiveType::F64 : PrimitiveType::F32;
  Expr a = Unary(Opcode::Abs, ConvertTo(wide, x));
  Expr whole = Unary(Opcode::Floor, a);
  Expr fraction = a - whole;
  // The highest bits of the random number that the float holds exactly, as a number in [0, 1).
  const int bits = InfoOf(random.type()).bits, kept = std::min(bits, InfoOf(wide).mantissa_bits);
  Expr top = Binary(Opcode::ShiftRightLogical, random, random.Like(bits - kept));
  Expr threshold = ConvertTo(wide, top) * std::ldexp(1.0, -kept);
  Expr rounded = whole + ConvertTo(wide, threshold < fraction);
  Expr real = ConvertTo(wide, x);
  rounded = SelectExpr(real < 0.0, -rounded, rounded);
  // Infinities and NaN have no fraction: they convert as they always do.
  Expr special = Unary(Opcode::Not, Unary(Opcode::IsFinite, real));
  return ConvertTo(i->shape().type(), SelectExpr(special, real, rounded)).get();
}

}  // namespace

absl::StatusOr<bool> StochasticConvertDecomposer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::StochasticConvert); }, Decompose);
}

}  // namespace kiln
