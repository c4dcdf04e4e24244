// An operation on two gathered arrays is gathered after the operation: one exchange instead of two.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool UsedOnce(const Instruction* i) {
  return i->Is(Opcode::AllGather) && i->operand_count() == 1 && i->shape().IsArray() && i->users().size() == 1 &&
         i->control_predecessors().empty() && i->control_successors().empty();
}

bool GathersBoth(const Instruction* i) {
  if (i->operand_count() != 2 || !i->HasTrait(Commutative) || !i->shape().IsArray()) return false;
  const Instruction *a = i->operand(0), *b = i->operand(1);
  return a != b && UsedOnce(a) && UsedOnce(b) && a->operand(0)->shape() == b->operand(0)->shape() &&
         a->attrs().dimensions == b->attrs().dimensions && NumberedAlike(a, b) &&
         WrittenGroups(a) == WrittenGroups(b) && a->attrs().constrain_layout == b->attrs().constrain_layout &&
         a->attrs().backend_config == b->attrs().backend_config && MayBecomeOne(a, b);
}

}  // namespace

absl::StatusOr<bool> AllGatherOptimizer(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, GathersBoth, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    Instruction *a = i->operand(0), *b = i->operand(1);
    Shape shard = a->operand(0)->shape();
    shard.set_type(i->shape().type());
    Instruction* local = i->parent()->AddClone(i, shard, {a->operand(0), b->operand(0)});
    return i->parent()->AddClone(a, i->shape(), {local});
  });
}

}  // namespace kiln
