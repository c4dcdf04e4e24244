// Drops every control edge.
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> ControlDepRemover(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      if (i->control_predecessors().empty() && i->control_successors().empty()) continue;
      if (!ctx.Take()) continue;
      i->DropControlDependencies();
      changed = true;
    }
  return changed;
}

}  // namespace kiln
