// An elementwise operation of one operand at the end of every branch moves behind the conditional: one copy of it
// instead of many, where it can fuse with what follows.
#include <algorithm>

#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/other_passes.h"
#include "compiler/passes/shelf/simplify/computation_text.h"
#include "compiler/passes/simplify/branches.h"

namespace kiln {
namespace {

// The operation behind result `k` of a branch, if it may leave.
Instruction* Last(const Computation* branch, int64_t k) {
  Instruction* i = branch->root()->operand(k);
  const bool moves = (i->IsElementwise() || i->Is(Opcode::Reshape) || i->Is(Opcode::Transpose)) &&
                     i->operand_count() == 1 && i->users().size() == 1 && !i->HasSideEffect() &&
                     i->control_predecessors().empty() && i->control_successors().empty();
  return moves && i->operand(0)->shape().IsArray() ? i : nullptr;
}

bool SameEverywhere(const std::vector<Computation*>& branches, int64_t k) {
  const Instruction* first = Last(branches[0], k);
  if (!first) return false;
  return std::all_of(branches.begin(), branches.end(), [&](const Computation* b) {
    const Instruction* i = Last(b, k);
    return i && InstructionText(i) == InstructionText(first) && i->operand(0)->shape() == first->operand(0)->shape();
  });
}

bool ReadByElement(const Instruction* i) {
  return !i->IsRoot() && std::all_of(i->users().begin(), i->users().end(),
                                     [](const Instruction* u) { return u->Is(Opcode::GetTupleElement); });
}

}  // namespace

absl::StatusOr<bool> ConditionalCodeMotion(Module& m, PassContext& ctx) {
  bool changed = false;
  const std::vector<Computation*> all = m.PostOrder();
  for (Computation* c : all) {
    for (Instruction* i : OfOpcode(c, Opcode::Conditional)) {
      if (!i->shape().IsTuple() || !ReadByElement(i)) continue;
      std::vector<Computation*> branches = BranchesOf(i);
      if (!std::all_of(branches.begin(), branches.end(),
                       [](const Computation* b) { return b->root()->Is(Opcode::Tuple); }))
        continue;
      std::vector<int64_t> moving;
      for (size_t k = 0; k < i->shape().tuple().size(); ++k)
        if (SameEverywhere(branches, static_cast<int64_t>(k))) moving.push_back(static_cast<int64_t>(k));
      if (moving.empty() || !ctx.Take()) continue;
      std::vector<Shape> shapes = i->shape().tuple();
      std::vector<Instruction*> ends;
      for (int64_t k : moving) {
        ends.push_back(Last(branches[0], k));
        shapes[static_cast<size_t>(k)] = ends.back()->operand(0)->shape();
      }
      const Shape shape = Shape::Tuple(shapes);
      for (Computation*& b : branches) {
        b = m.CloneComputation(b);
        std::vector<Instruction*> results = b->root()->operands();
        for (int64_t k : moving) results[static_cast<size_t>(k)] = results[static_cast<size_t>(k)]->operand(0);
        Instruction* old = b->root();
        b->set_root(b->Add(Opcode::Tuple, shape, results));
        b->Remove(old);
      }
      Instruction* n = c->AddClone(i, shape, i->operands());
      SetBranches(n, branches);
      for (Instruction* u : std::vector<Instruction*>(i->users())) {
        const int64_t k = *u->attrs().tuple_index;
        Instruction* value = c->Add(Opcode::GetTupleElement, shapes[static_cast<size_t>(k)], {n});
        value->mutable_attrs().tuple_index = k;
        const auto at = std::find(moving.begin(), moving.end(), k);
        if (at != moving.end())
          value = c->AddClone(ends[static_cast<size_t>(at - moving.begin())], u->shape(), {value});
        u->ReplaceAllUsesWith(value);
        c->Remove(u);
      }
      c->Remove(i);
      changed = true;
    }
  }
  if (changed) RETURN_IF_ERROR(Dce(m, ctx).status());
  return changed;
}

}  // namespace kiln
