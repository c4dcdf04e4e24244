// A conditional on a constant becomes a call of the branch it picks; an index out of range picks the last. One whose
// two branches only hand on what they are given becomes selections.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/simplify/branches.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

// The branch that a constant picks.
int64_t Picked(const Instruction* i) {
  const int64_t v = i->operand(0)->literal().Get(0).i, n = static_cast<int64_t>(BranchesOf(i).size());
  if (i->operand(0)->shape().type() == PrimitiveType::Pred) return v ? 0 : 1;
  return v < 0 || v >= n ? n - 1 : v;
}

bool OnlyHandsOn(const Computation* c) {
  for (const auto& i : c->instructions()) {
    if (!i->control_predecessors().empty()) return false;
    if (!i->Is(Opcode::Parameter) && !i->Is(Opcode::Tuple) && !i->Is(Opcode::GetTupleElement) &&
        !i->Is(Opcode::AfterAll))
      return false;
  }
  return true;
}

bool Selectable(const Shape& s) {
  if (s.IsTuple()) return std::all_of(s.tuple().begin(), s.tuple().end(), Selectable);
  return s.IsToken() || (s.IsArray() && !s.HasDynamic());
}

// Results of a tuple: one array that is handed on takes no more than a pointer.
bool BecomesSelections(const Instruction* i) {
  if (i->operand(0)->shape().type() != PrimitiveType::Pred || !i->shape().IsTuple() || !Selectable(i->shape()) ||
      !i->control_predecessors().empty() || !i->control_successors().empty())
    return false;
  for (const Computation* branch : BranchesOf(i))
    if (!OnlyHandsOn(branch)) return false;
  return true;
}

Instruction* Selected(Instruction* pred, Instruction* a, Instruction* b) {
  Computation* c = pred->parent();
  if (a->shape().IsToken()) return c->Add(Opcode::AfterAll, a->shape(), {a, b});
  if (a->shape().IsArray()) return SelectExpr(BroadcastTo(pred, a->shape().dims()), a, b).get();
  std::vector<Instruction*> parts;
  for (size_t k = 0; k < a->shape().tuple().size(); ++k) {
    const int64_t n = static_cast<int64_t>(k);
    parts.push_back(Selected(pred, PartOf(a, n).get(), PartOf(b, n).get()));
  }
  return c->Add(Opcode::Tuple, a->shape(), parts);
}

}  // namespace

absl::StatusOr<bool> ConditionalSimplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Conditional) || HasSchedulingGroup(i)) continue;
      const bool constant = i->operand(0)->Is(Opcode::Constant);
      if ((!constant && !BecomesSelections(i)) || !ctx.Take()) continue;
      const std::vector<Computation*> branches = BranchesOf(i);
      Instruction* with;
      if (constant) {
        const int64_t branch = Picked(i);
        with = c->Add(Opcode::Call, i->shape(), {i->operand(branch + 1)});
        with->mutable_attrs().to_apply = branches[static_cast<size_t>(branch)];
      } else {
        with = Selected(i->operand(0), InlineBody(c.get(), branches[0], {i->operand(1)}, i),
                        InlineBody(c.get(), branches[1], {i->operand(2)}, i));
      }
      i->ReplaceAllUsesWith(with);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
