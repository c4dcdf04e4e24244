// A dot or convolution whose result is narrower than its operands computes in their type, and the result is converted.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> ResultCaster(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return (i->Is(Opcode::Dot) || i->Is(Opcode::Convolution)) &&
               i->operand(0)->shape().type() == i->operand(1)->shape().type() &&
               BitWidth(i->operand(0)->shape().type()) > BitWidth(i->shape().type());
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Shape wide = i->shape();
        wide.set_type(i->operand(0)->shape().type());
        return ConvertTo(i->shape().type(), i->parent()->AddClone(i, wide, i->operands())).get();
      });
}

}  // namespace kiln
