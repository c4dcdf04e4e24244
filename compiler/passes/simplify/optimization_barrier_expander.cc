// Optimisation barriers go once nothing is left that they could stop.
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> OptimizationBarrierExpander(Module& m, PassContext&) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder())
      if (i->Is(Opcode::OptimizationBarrier)) {
        i->ReplaceAllUsesWith(i->operand(0));
        c->Remove(i);
        changed = true;
      }
  return changed;
}

}  // namespace kiln
