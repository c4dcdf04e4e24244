// A conditional on a constant becomes a call of the branch it picks; an index out of range picks the last.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"

namespace kiln {

absl::StatusOr<bool> ConditionalSimplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Conditional) || !i->operand(0)->Is(Opcode::Constant) || HasSchedulingGroup(i) || !ctx.Take())
        continue;
      const int64_t v = i->operand(0)->literal().Get(0).i;
      int64_t branch;
      Computation* f;
      if (i->attrs().true_computation) {
        branch = v ? 0 : 1;
        f = v ? *i->attrs().true_computation : *i->attrs().false_computation;
      } else {
        const int64_t n = static_cast<int64_t>(i->attrs().branch_computations->size());
        branch = i->operand(0)->shape().type() == PrimitiveType::Pred ? (v ? 0 : 1) : v < 0 || v >= n ? n - 1 : v;
        f = (*i->attrs().branch_computations)[branch];
      }
      Instruction* call = c->Add(Opcode::Call, i->shape(), {i->operand(branch + 1)});
      call->mutable_attrs().to_apply = f;
      i->ReplaceAllUsesWith(call);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
