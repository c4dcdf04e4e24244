// Dots and convolutions of integers whose result is wider than their operands: the operands are widened first, for a
// target without mixed products.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> OperandUpcaster(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        if (!i->Is(Opcode::Dot) && !i->Is(Opcode::Convolution)) return false;
        const PrimitiveType t = i->shape().type();
        const auto wider = [&](const Instruction* o) {
          const PrimitiveType from = o->shape().type();
          return from != t && IsIntegral(from) == IsIntegral(t) && BitWidth(from) < BitWidth(t);
        };
        return wider(i->operand(0)) || wider(i->operand(1));
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const PrimitiveType t = i->shape().type();
        return i->parent()->AddClone(i, i->shape(),
                                     {ConvertTo(t, i->operand(0)).get(), ConvertTo(t, i->operand(1)).get()});
      });
}

}  // namespace kiln
