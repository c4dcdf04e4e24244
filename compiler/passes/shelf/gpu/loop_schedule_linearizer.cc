// In loop bodies what reads an element of the state comes before what computes its next value: no copy of it is needed
// then.
#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool Linearize(Computation* body, PassContext& ctx) {
  const Instruction* root = body->root();
  if (!root->Is(Opcode::Tuple)) return false;
  bool changed = false;
  for (Instruction* element : body->PostOrder()) {
    if (!element->Is(Opcode::GetTupleElement) || !element->operand(0)->Is(Opcode::Parameter)) continue;
    Instruction* next = root->operand(*element->attrs().tuple_index);
    if (next->operands().empty() || next->Is(Opcode::GetTupleElement)) continue;
    for (Instruction* reader : std::vector<Instruction*>(element->users())) {
      if (reader == next || reader == root || reader->Is(Opcode::Tuple)) continue;
      const Reachability reach(body);
      if (reach.Reaches(next, reader) || reach.Reaches(reader, next) || !ctx.Take()) continue;
      reader->AddControlDependencyTo(next);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> LoopScheduleLinearizer(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::While)) changed |= Linearize(*i->attrs().body, ctx);
  return changed;
}

}  // namespace kiln
