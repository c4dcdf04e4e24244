#include "compiler/passes/loops/unroll.h"

#include "compiler/hlo/of_opcode.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {

bool UnrollLoops(Module& m, PassContext& ctx,
                 const std::function<bool(const Instruction* loop, int64_t iterations)>& wanted) {
  bool changed = false;
  PureComputations pure;
  // A body is copied once its own loops are gone.
  for (Computation* c : m.PostOrder())
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      if (!loop->operand(0)->Is(Opcode::Tuple) || !loop->control_predecessors().empty() ||
          !loop->control_successors().empty() || !pure.Contains(*loop->attrs().body) ||
          !pure.Contains(*loop->attrs().condition))
        continue;
      const std::optional<Induction> v = FindInduction(loop);
      if (!v || v->trips < 1 || !wanted(loop, v->trips) || !ctx.Take()) continue;
      Instruction* state = loop->operand(0);
      for (int64_t k = 0; k < v->trips; ++k) state = InlineBody(c, *loop->attrs().body, {state}, loop);
      loop->ReplaceAllUsesWith(state);
      c->Remove(loop);
      changed = true;
    }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
