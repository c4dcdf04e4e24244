// Fusions that the input brings along become their bodies again: which operations run together is this compiler's own
// decision, made later with its own kernels in mind.
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {

absl::StatusOr<bool> Defuser(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Fusion) || !ctx.Take()) continue;
      Instruction* root = InlineBody(c, *i->attrs().calls, i->operands(), i);
      i->ReplaceAllUsesWith(root);
      c->Remove(i);
      changed = true;
    }
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
