// Arrays without elements become constants.
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> ZeroSizedHloElimination(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->shape().IsArray() || i->shape().ElementCount() != 0 || i->Is(Opcode::Constant) ||
          i->Is(Opcode::Parameter) || i->HasSideEffect() || i->shape().HasDynamic() || !ctx.Take())
        continue;
      Instruction* k = c->AddConstant(Literal(i->shape()));
      k->mutable_shape() = i->shape();
      i->ReplaceAllUsesWith(k);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
