// Liveness across computations: an element of a loop's state that nothing live is made of is passed through untouched,
// so that what computed it goes. Then loops and tuples are simplified, which takes the element out of the state.
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/passes/other_passes.h"

namespace kiln {

namespace {

bool PassDeadElementsThrough(Module& m, PassContext& ctx) {
  bool changed = false;
  PureComputations pure;
  std::vector<Computation*> all = m.PostOrder();
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    for (Instruction* loop : (*it)->PostOrder()) {
      if (!loop->Is(Opcode::While) || !IsPlainLoop(loop, &pure)) continue;
      const std::vector<bool> live = LiveElements(loop);
      std::vector<int64_t> dead;
      for (size_t k = 0; k < live.size(); ++k)
        if (!live[k] && !IsInvariant(loop, static_cast<int64_t>(k))) dead.push_back(static_cast<int64_t>(k));
      if (dead.empty() || !ctx.Take()) continue;
      Computation* body = m.CloneComputation(*loop->attrs().body);
      loop->mutable_attrs().body = body;
      for (int64_t k : dead) {
        Instruction* same = body->Add(Opcode::GetTupleElement, loop->shape().tuple()[k], {body->parameter(0)});
        same->mutable_attrs().tuple_index = k;
        body->root()->ReplaceOperand(k, same);
      }
      changed = true;
    }
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> HloModuleDce(Module& m, PassContext& ctx) {
  bool changed = PassDeadElementsThrough(m, ctx);
  for (const PassFn pass : {Dce, SimplifyWhileLoops, TupleSimplifier, Dce}) {
    ASSIGN_OR_RETURN(const bool did, pass(m, ctx));
    changed = changed || did;
  }
  return changed;
}

}  // namespace kiln
