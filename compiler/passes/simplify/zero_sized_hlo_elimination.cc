// Arrays without elements become constants, and so does what is gathered from one: zeros, as in XLA.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> ZeroSizedHloElimination(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (i->Is(Opcode::Gather) && i->operand(0)->shape().ElementCount() == 0 && i->shape().ElementCount() > 0 &&
          !i->shape().HasDynamic() && ctx.Take()) {
        const Expr zero = c->AddConstant(Literal::Of(i->shape().type(), 0));
        i->ReplaceAllUsesWith(BroadcastTo(zero, i->shape().dims()).get());
        c->Remove(i);
        changed = true;
        continue;
      }
      const bool given = i->Is(Opcode::Parameter);  // stays, read by nobody
      if (!i->shape().IsArray() || i->shape().ElementCount() != 0 || i->Is(Opcode::Constant) || i->HasSideEffect() ||
          i->shape().HasDynamic() || (given && i->users().empty() && !i->IsRoot()) || !ctx.Take())
        continue;
      Instruction* k = c->AddConstant(Literal(i->shape()));
      k->mutable_shape() = i->shape();
      i->ReplaceAllUsesWith(k);
      if (!given) c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
