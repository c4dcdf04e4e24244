// Vertical fusion whatever the target: a producer that computes or moves elements goes into the loops that read it, if
// it is cheap or has one consumer only. Never what has side effects. Source: XLA's instruction_fusion.cc.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool MovesElements(const Instruction* i) {
  return i->HasTrait(Moving) || i->Is(Opcode::DynamicSlice) || i->Is(Opcode::Iota);
}

bool IsLoopOfElements(const Instruction* i) {
  return i->shape().IsArray() && (i->IsElementwise() || MovesElements(i)) && !i->HasSideEffect() &&
         i->control_predecessors().empty() && i->control_successors().empty();
}

bool Consumes(const Instruction* i) {
  if (!i->Is(Opcode::Fusion)) return IsLoopOfElements(i);
  return i->attrs().fusion_kind == FusionKind::kLoop && IsLoopOfElements((*i->attrs().calls)->root());
}

bool Cheap(const Instruction* i) { return !i->HasTrait(Transcendental) && !i->Is(Opcode::Divide); }

}  // namespace

absl::StatusOr<bool> Fusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    std::vector<Instruction*> order = c->PostOrder();
    std::reverse(order.begin(), order.end());
    absl::flat_hash_set<const Instruction*> gone;
    for (Instruction* p : order) {
      if (gone.contains(p) || !IsLoopOfElements(p) || p->IsRoot() || p->users().empty()) continue;
      const std::vector<Instruction*> users = p->users();
      if (!std::all_of(users.begin(), users.end(), Consumes) || (users.size() > 1 && !Cheap(p)) || !ctx.Take())
        continue;
      for (Instruction* u : users) {
        if (!u->Is(Opcode::Fusion)) gone.insert(u);
        FuseInto(p, u);
      }
      c->Remove(p);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
