// Calls become the bodies they call.
#include "compiler/hlo/inlined_size.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {

absl::StatusOr<bool> CallInliner(Module& m, PassContext& ctx) {
  RETURN_IF_ERROR(CheckInlinedSize(m));
  bool changed = false;
  // Callees first, so that a body is inlined after its own calls were.
  for (Computation* c : m.PostOrder()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Call) || !ctx.Take()) continue;
      Instruction* root = InlineBody(c, *i->attrs().to_apply, i->operands(), i);
      i->ReplaceAllUsesWith(root);
      c->Remove(i);
      changed = true;
    }
  }
  m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
