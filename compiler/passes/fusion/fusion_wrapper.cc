// Wraps what is left of elementwise and indexing instructions into fusions of one, so that loops have one emitter.
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {

absl::StatusOr<bool> FusionWrapper(Module& m, PassContext&) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    for (Instruction* i : c->PostOrder()) {
      const Lowering l = InfoOf(i->opcode()).lowering;
      const bool wraps = l == Lowering::Elemental || i->Is(Opcode::Reduce) || i->Is(Opcode::ReduceWindow) ||
                         i->Is(Opcode::DynamicUpdateSlice) || i->Is(Opcode::Scatter) || i->Is(Opcode::SelectAndScatter);
      if (!wraps || i->Is(Opcode::Copy)) continue;
      WrapInFusion(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
