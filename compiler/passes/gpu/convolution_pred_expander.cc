// Convolutions of predicates count matches in f16 or f32, whichever holds the count, and ask whether there were any.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> ConvolutionPredExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        return i->Is(Opcode::Convolution) && i->shape().type() == PrimitiveType::Pred &&
               i->operand(0)->shape().type() == PrimitiveType::Pred &&
               i->operand(1)->shape().type() == PrimitiveType::Pred;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        constexpr int64_t kMostInF16 = 65504;
        const PrimitiveType t =
            i->operand(1)->shape().ElementCount() <= kMostInF16 ? PrimitiveType::F16 : PrimitiveType::F32;
        Instruction* conv =
            i->parent()->AddClone(i, Shape::Array(t, i->shape().dims()),
                                  {ConvertTo(t, i->operand(0)).get(), ConvertTo(t, i->operand(1)).get()});
        return CompareExpr(Direction::NE, conv, Expr(conv).Like(0)).get();
      });
}

}  // namespace kiln
