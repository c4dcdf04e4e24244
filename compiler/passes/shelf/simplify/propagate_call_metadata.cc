// Instructions of a called computation without metadata take that of the only call: messages and profiles then name
// the line that the user wrote.
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> PropagateCallMetadata(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Computation*> all = m.PostOrder();
  absl::flat_hash_map<const Computation*, int> callers;
  for (const Computation* c : all)
    for (const auto& i : c->instructions())
      for (const Computation* f : i->called()) ++callers[f];
  for (auto it = all.rbegin(); it != all.rend(); ++it)
    for (const auto& call : (*it)->instructions()) {
      if (!call->Is(Opcode::Call) || !call->attrs().metadata || callers[*call->attrs().to_apply] != 1) continue;
      for (const auto& i : (*call->attrs().to_apply)->instructions()) {
        if (i->attrs().metadata || i->Is(Opcode::Parameter) || !ctx.Take()) continue;
        i->mutable_attrs().metadata = call->attrs().metadata;
        changed = true;
      }
    }
  return changed;
}

}  // namespace kiln
