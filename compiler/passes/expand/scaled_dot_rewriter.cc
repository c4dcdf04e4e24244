// scaled-dot as a dot of operands multiplied by their block scales in f32.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// `scale` repeated to the extents of `x`: each of its dimensions divides that of `x`.
absl::StatusOr<Expr> Spread(const Instruction* i, Expr scale, const Shape& x) {
  if (scale.shape().rank() == 0) return BroadcastTo(scale, x.dims());
  if (scale.shape().rank() != x.rank()) return ErrorAt(i, "a scale has another rank than its operand");
  Ints split, mapped;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const int64_t n = scale.shape().dim(d);
    if (n == 0 || x.dim(d) % n)
      return ErrorAt(i, absl::StrCat("scale extent ", n, " does not divide operand extent ", x.dim(d)));
    mapped.push_back(static_cast<int64_t>(split.size()));
    split.push_back(n);
    split.push_back(x.dim(d) / n);
  }
  return ReshapeTo(BroadcastTo(scale, split, mapped), x.dims());
}

absl::StatusOr<Instruction*> Rewrite(Instruction* i) {
  Expr side[2] = {i->operand(0), i->operand(1)};
  for (int k = 0; k < 2; ++k) {
    ASSIGN_OR_RETURN(Expr scale, Spread(i, ConvertTo(PrimitiveType::F32, i->operand(2 + k)), i->operand(k)->shape()));
    side[k] = ConvertTo(PrimitiveType::F32, side[k]) * scale;
  }
  const Shape wide = Shape::Array(PrimitiveType::F32, i->shape().dims());
  Instruction* d = i->parent()->Add(Opcode::Dot, wide, {side[0].get(), side[1].get()});
  d->mutable_attrs() = i->attrs();
  return ConvertTo(i->shape().type(), d).get();
}

}  // namespace

absl::StatusOr<bool> ScaledDotRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::ScaledDot); }, Rewrite);
}

}  // namespace kiln
