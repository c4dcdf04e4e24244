// Products with nothing to tile, of two vectors or of an outer product, as multiplications and a sum.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> DotStrengthReduction(Module& m, PassContext& ctx) {
  const auto wanted = [](const Instruction* i) {
    const Attributes& a = i->attrs();
    if (!i->Is(Opcode::Dot) || a.sparsity || a.algorithm || i->shape().HasDynamic()) return false;
    if (a.lhs_batch_dims && !a.lhs_batch_dims->empty()) return false;
    if (!a.lhs_contracting_dims || i->operand(0)->shape().type() != i->operand(1)->shape().type()) return false;
    const bool vectors = i->operand(0)->shape().rank() == 1 && i->operand(1)->shape().rank() == 1;
    return vectors && a.lhs_contracting_dims->size() <= 1;
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const PrimitiveType t = i->shape().type();
    // Narrow floats are summed as the product would sum them.
    const PrimitiveType wide = IsFloat(t) && InfoOf(t).bits < 32 ? PrimitiveType::F32 : t;
    Expr a = ConvertTo(wide, i->operand(0)), b = ConvertTo(wide, i->operand(1));
    if (i->attrs().lhs_contracting_dims->empty()) {
      const Ints& dims = i->shape().dims();
      return ConvertTo(t, BroadcastTo(a, dims, {0}) * BroadcastTo(b, dims, {1})).get();
    }
    Expr zero = i->parent()->AddConstant(Literal::Of(wide, 0));
    const Opcode add = t == PrimitiveType::Pred ? Opcode::Or : Opcode::Add;
    Expr product = t == PrimitiveType::Pred ? (a & b) : a * b;
    return ConvertTo(t, ReduceOf(product, zero, {0}, ScalarFunction(i->parent()->module(), add, wide))).get();
  });
}

}  // namespace kiln
