// Copies into another layout move behind what reads them, towards copies that undo them: the operation computes in the
// layout that its operand has, and its result is copied.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

bool Relayouts(const Instruction* i) {
  return i->Is(Opcode::Copy) && i->shape().IsArray() && i->shape().layout() && i->operand(0)->shape().layout() &&
         i->shape().layout() != i->operand(0)->shape().layout() && i->control_predecessors().empty() &&
         i->control_successors().empty();
}

Shape InLayout(Shape s, const Shape& like) {
  s.set_layout(like.layout());
  return s;
}

// The layout that is left of `from` without the dimensions in `gone`.
Layout Without(const Layout& from, const Ints& gone) {
  Layout out;
  out.extras = from.extras;
  for (int64_t d : from.minor_to_major) {
    if (std::find(gone.begin(), gone.end(), d) != gone.end()) continue;
    out.minor_to_major.push_back(d - std::count_if(gone.begin(), gone.end(), [&](int64_t g) { return g < d; }));
  }
  return out;
}

// How many of the first operands must be copies from one layout; 0: the operation does not compute in any layout.
int64_t CopiedOperands(const Instruction* i) {
  if (!i->shape().IsArray() || !i->shape().layout()) return 0;
  switch (i->opcode()) {
    case Opcode::Pad:
    case Opcode::Slice:
    case Opcode::DynamicSlice:
      return 1;
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
      return i->operand_count() == 2 ? 1 : 0;
    case Opcode::Concatenate:
      return i->operand_count();
    default:
      return i->IsElementwise() && i->operand_count() <= 2 && !i->Is(Opcode::Copy) ? i->operand_count() : 0;
  }
}

bool Wanted(const Instruction* i) {
  const int64_t n = CopiedOperands(i);
  if (n == 0 || !i->control_predecessors().empty() || !i->control_successors().empty()) return false;
  for (int64_t k = 0; k < n; ++k) {
    const Instruction *o = i->operand(k), *first = i->operand(0);
    if (!Relayouts(o) || o->users().size() != 1 ||
        o->operand(0)->shape().layout() != first->operand(0)->shape().layout())
      return false;
  }
  // What it computes now has the layout of its operands.
  return i->Is(Opcode::Reduce) || i->shape().layout() == i->operand(0)->shape().layout();
}

void Move(Instruction* i) {
  Computation* c = i->parent();
  std::vector<Instruction*> operands = i->operands();
  const int64_t n = CopiedOperands(i);
  for (int64_t k = 0; k < n; ++k) operands[static_cast<size_t>(k)] = i->operand(k)->operand(0);
  Shape shape = InLayout(i->shape(), operands[0]->shape());
  if (i->Is(Opcode::Reduce)) shape.set_layout(Without(*operands[0]->shape().layout(), *i->attrs().dimensions));
  Instruction* moved = c->AddClone(i, shape, operands);
  if (shape != i->shape()) moved = c->Add(Opcode::Copy, i->shape(), {moved});
  i->ReplaceAllUsesWith(moved);
  const std::set<Instruction*> copies(i->operands().begin(), i->operands().begin() + n);
  c->Remove(i);
  for (Instruction* o : copies) c->Remove(o);
}

}  // namespace

absl::StatusOr<bool> MoveCopyToUsers(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!Wanted(i) || !ctx.Take()) continue;
      Move(i);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
