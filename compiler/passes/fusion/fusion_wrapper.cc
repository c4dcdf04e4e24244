// Wraps what is left of elementwise and indexing instructions into fusions of one and the scalar constants that it
// reads, so that loops have one emitter.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

// Control flow, and what runs asynchronously.
std::vector<Computation*> RunningComputations(const Module& m) {
  std::vector<Computation*> out = ControlComputations(m);
  for (size_t k = 0; k < out.size(); ++k)
    for (const auto& i : out[k]->instructions()) {
      const bool nested = i->Is(Opcode::AsyncStart) || i->Is(Opcode::Call) || i->Is(Opcode::While);
      for (Computation* callee : i->called())
        if (nested && std::find(out.begin(), out.end(), callee) == out.end()) out.push_back(callee);
    }
  return out;
}

bool IsScalarConstant(const Instruction* i) {
  return i->Is(Opcode::Constant) && i->shape().IsArray() && i->shape().rank() == 0 &&
         i->control_predecessors().empty() && i->control_successors().empty();
}

}  // namespace

absl::StatusOr<bool> FusionWrapper(Module& m, PassContext&) {
  bool changed = false;
  for (Computation* c : RunningComputations(m)) {
    for (Instruction* i : c->PostOrder()) {
      const Lowering l = InfoOf(i->opcode()).lowering;
      const bool wraps = l == Lowering::Elemental || i->Is(Opcode::Reduce) || i->Is(Opcode::ReduceWindow) ||
                         i->Is(Opcode::DynamicUpdateSlice) || i->Is(Opcode::Scatter) || i->Is(Opcode::SelectAndScatter);
      if (!wraps || i->Is(Opcode::Copy)) continue;
      Instruction* fusion = WrapInFusion(i);
      for (Instruction* o : std::vector<Instruction*>(fusion->operands())) {
        if (!IsScalarConstant(o)) continue;
        FuseInto(o, fusion);
        if (o->users().empty()) c->Remove(o);
      }
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
