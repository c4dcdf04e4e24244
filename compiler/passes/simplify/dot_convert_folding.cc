// dot(a, convert(b)) reads b as it is: kernels widen what they read in registers, so that the wide copy of all weights
// of a layer is neither stored nor read. For f32 sums of operands that f32 holds exactly.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

// Types that kernels of products widen as fast as they read them.
bool IsNarrow(PrimitiveType t) {
  const bool small_integer = IsIntegral(t) && InfoOf(t).bits <= 8;
  return small_integer || (IsFloat(t) && InfoOf(t).bits <= 16 && t != PrimitiveType::F8E8M0FNU);
}

// Those of which a vector is widened in a few instructions, so that squares of them are transposed in registers.
bool TurnsInRegisters(PrimitiveType t) {
  using P = PrimitiveType;
  return t == P::S8 || t == P::U8 || t == P::BF16 || t == P::F16;
}

int64_t Elements(const Instruction* operand, const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= operand->shape().dim(d);
  return n;
}

bool Widens(const Instruction* dot, int64_t operand) {
  const Instruction* o = dot->operand(operand);
  if (!o->Is(Opcode::Convert) || o->shape().type() != PrimitiveType::F32) return false;
  return IsNarrow(o->operand(0)->shape().type());
}

// The operand whose conversion goes, or -1: a matrix that is read once, for a vector, or the second one, which is
// widened while it is packed.
int64_t OperandOf(const Instruction* i) {
  if (!IsPlainDot(i) || i->shape().type() != PrimitiveType::F32 || !MultipliesAsAsked(i)) return -1;
  for (int64_t k = 0; k < 2; ++k)
    if (i->operand(k)->shape().type() != PrimitiveType::F32) return -1;
  const DotSide sides[2] = {SideOf(i, 0), SideOf(i, 1)};
  for (const int64_t k : {1, 0}) {
    if (!Widens(i, k)) continue;
    const int64_t others = Elements(i->operand(1 - k), sides[1 - k].free);
    const int64_t own = Elements(i->operand(k), sides[k].free);
    const int64_t minor = i->operand(k)->shape().rank() - 1;
    if (others == 1 && own > 1) return k;
    const bool packs = Holds(sides[k].free, minor) || TurnsInRegisters(i->operand(k)->operand(0)->shape().type());
    if (k == 1 && own > 1 && packs) return k;
  }
  return -1;
}

absl::StatusOr<Instruction*> Folded(Instruction* i) {
  const int64_t k = OperandOf(i);
  Expr operands[2] = {i->operand(0), i->operand(1)};
  operands[k] = i->operand(k)->operand(0);
  return DotLike(i, operands[0], SideOf(i, 0), operands[1], SideOf(i, 1)).get();
}

}  // namespace

absl::StatusOr<bool> DotConvertFolding(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return OperandOf(i) >= 0; }, Folded);
}

}  // namespace kiln
