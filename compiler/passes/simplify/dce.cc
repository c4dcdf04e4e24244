// Removes what neither the root nor a side effect needs, exchanges between devices included, and computations that the
// entry does not reach; and unread results of loop fusions.
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/effects.h"
#include "compiler/passes/simplify/fusion_results.h"

namespace kiln {

namespace {

bool RemoveDead(Module& m) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    std::vector<Instruction*> order = c->PostOrder();
    // Users come before what they use here, so that one sweep takes whole chains.
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      Instruction* i = *it;
      if (!i->users().empty() || !i->control_successors().empty() || i->IsRoot() || i->Is(Opcode::Parameter) ||
          HasEffectBesidesExchange(i))
        continue;
      c->Remove(i);
      changed = true;
    }
  }
  if (m.RemoveUnreachableComputations()) changed = true;
  return changed;
}

}  // namespace

absl::StatusOr<bool> Dce(Module& m, PassContext& ctx) {
  bool changed = RemoveDead(m);
  while (DropUnreadFusionResults(m, ctx)) {
    RemoveDead(m);  // what only those results were made of
    changed = true;
  }
  return changed;
}

}  // namespace kiln
