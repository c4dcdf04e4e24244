// Each call, loop and branch owns its computation, so that layouts and storage can be decided for it alone.
#include "compiler/hlo/inlined_size.h"
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> FlattenCallGraph(Module& m, PassContext&) {
  RETURN_IF_ERROR(CheckInlinedSize(m));
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    absl::flat_hash_set<const Computation*> used;
    for (Computation* c : m.PostOrder()) {
      for (const auto& i : c->instructions()) {
        if (!i->Is(Opcode::While) && !i->Is(Opcode::Conditional) && !i->Is(Opcode::Call)) continue;
        i->MapCalled([&](Computation* callee) {
          if (used.insert(callee).second) return callee;
          again = changed = true;
          Computation* copy = m.CloneComputation(callee);
          used.insert(copy);
          return copy;
        });
      }
      if (again) break;  // the order is stale
    }
  }
  return changed;
}

}  // namespace kiln
