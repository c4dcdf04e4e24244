// Wraps what is left of elementwise and indexing instructions into fusions of one, so that loops have one emitter.
#include "compiler/passes/fusion/fuse.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> FusionWrapper(Module& m, PassContext&) {
  bool changed = false;
  std::vector<Computation*> todo = {m.entry()};
  for (size_t k = 0; k < todo.size(); ++k) {
    for (Instruction* i : todo[k]->PostOrder()) {
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional) || i->Is(Opcode::Call))
        for (Computation* callee : i->called()) todo.push_back(callee);
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
