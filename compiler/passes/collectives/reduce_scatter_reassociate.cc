// The sum of two scattered reductions between the same devices is one scattered reduction of the sum; likewise for
// other operations that are the reduction's own.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

bool Plain(const Instruction* i, Opcode op) {
  return i->Is(Opcode::ReduceScatter) && i->operand_count() == 1 && i->shape().IsArray() && i->users().size() == 1 &&
         i->control_predecessors().empty() && i->control_successors().empty() &&
         !i->attrs().constrain_layout.value_or(false) && ReducerOf(i) == op;
}

bool Reassociates(const Instruction* i) {
  if (i->operand_count() != 2 || !i->HasTrait(Commutative) || !i->shape().IsArray()) return false;
  const Instruction *a = i->operand(0), *b = i->operand(1);
  return Plain(a, i->opcode()) && Plain(b, i->opcode()) && a->operand(0)->shape() == b->operand(0)->shape() &&
         a->attrs().dimensions == b->attrs().dimensions && NumberedAlike(a, b) &&
         WrittenGroups(a) == WrittenGroups(b) && MayBecomeOne(a, b);
}

}  // namespace

absl::StatusOr<bool> ReduceScatterReassociate(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Reassociates, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    Instruction *a = i->operand(0), *b = i->operand(1);
    Instruction* local = i->parent()->AddClone(i, a->operand(0)->shape(), {a->operand(0), b->operand(0)});
    return i->parent()->AddClone(a, i->shape(), {local});
  });
}

}  // namespace kiln
