// Conditionals give tuples: one that gives an array gives a tuple of it, and so do its branches.
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> ConditionalCanonicalizer(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Conditional) || i->shape().IsTuple() || !ctx.Take()) continue;
      const Shape tuple = Shape::Tuple({i->shape()});
      Instruction* n = c->AddClone(i, tuple, i->operands());
      n->MapCalled([&](Computation* branch) {
        Computation* own = m.CloneComputation(branch);
        own->set_root(own->Add(Opcode::Tuple, tuple, {own->root()}));
        return own;
      });
      for (Instruction* p : i->control_predecessors()) p->AddControlDependencyTo(n);
      Instruction* e = c->Add(Opcode::GetTupleElement, i->shape(), {n});
      e->mutable_attrs().tuple_index = 0;
      for (Instruction* s : i->control_successors()) n->AddControlDependencyTo(s);
      i->ReplaceAllUsesWith(e);
      c->Remove(i);
      changed = true;
    }
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
