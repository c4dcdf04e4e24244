// A conversion of a conversion is one conversion where the type between holds every value of the first: nothing was
// rounded there. A narrowing in the middle stays, because it is visible in the result.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/precision/type_order.h"

namespace kiln {

absl::StatusOr<bool> SimplifyFpConversions(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        if (!i->Is(Opcode::Convert) || !i->operand(0)->Is(Opcode::Convert)) return false;
        const PrimitiveType from = i->operand(0)->operand(0)->shape().type(), middle = i->operand(0)->shape().type();
        return IsFloat(from) && IsFloat(middle) && IsFloat(i->shape().type()) && HoldsEvery(middle, from);
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Instruction* x = i->operand(0)->operand(0);
        if (x->shape().type() == i->shape().type()) return x;
        return i->parent()->AddClone(i, i->shape(), {x});
      });
}

}  // namespace kiln
