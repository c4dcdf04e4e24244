// In loop bodies what reads an element of the state comes before what updates it in place: no copy of it is needed
// then.
#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool UpdatesInPlace(const Instruction* i, const Instruction* value) {
  const Instruction* root = i->Is(Opcode::Fusion) ? (*i->attrs().calls)->root() : i;
  if (!root->Is(Opcode::DynamicUpdateSlice) && !root->Is(Opcode::Scatter)) return false;
  if (!i->Is(Opcode::Fusion)) return i->operand(0) == value;
  const Instruction* target = root->operand(0);
  return target->Is(Opcode::Parameter) && i->operand(*target->attrs().parameter_number) == value;
}

bool Linearize(Computation* body, PassContext& ctx) {
  bool changed = false;
  for (Instruction* element : body->PostOrder()) {
    if (!element->Is(Opcode::GetTupleElement) || !element->operand(0)->Is(Opcode::Parameter)) continue;
    for (Instruction* update : std::vector<Instruction*>(element->users())) {
      if (!UpdatesInPlace(update, element)) continue;
      for (Instruction* reader : std::vector<Instruction*>(element->users())) {
        if (reader == update || reader == body->root() || reader->Is(Opcode::Tuple)) continue;
        const Reachability reach(body);
        if (reach.Reaches(update, reader) || reach.Reaches(reader, update) || !ctx.Take()) continue;
        reader->AddControlDependencyTo(update);
        changed = true;
      }
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
