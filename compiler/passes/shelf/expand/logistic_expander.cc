// logistic(x) = 1 / (1 + exp(-x)).
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> LogisticExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::Logistic); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Expr x = i->operand(0);
        return (1.0 / (Unary(Opcode::Exponential, -x) + 1.0)).get();
      });
}

}  // namespace kiln
