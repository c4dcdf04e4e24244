// The sum of two reductions between the same devices is one reduction of the sum; likewise for other operations that
// are the reduction's own.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/collectives/groups.h"

namespace kiln {

absl::StatusOr<bool> AllReduceReassociate(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        if (i->operand_count() != 2 || !i->HasTrait(Commutative)) return false;
        const Instruction *a = i->operand(0), *b = i->operand(1);
        return a != b && PlainAllReduce(a) && PlainAllReduce(b) && a->users().size() == 1 && b->users().size() == 1 &&
               ReducerOf(a) == i->opcode() && ReducerOf(b) == i->opcode() && NumberedAlike(a, b) &&
               WrittenGroups(a) == WrittenGroups(b);
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Instruction *a = i->operand(0), *b = i->operand(1);
        Instruction* local = i->parent()->AddClone(i, i->shape(), {a->operand(0), b->operand(0)});
        return i->parent()->AddClone(a, i->shape(), {local});
      });
}

}  // namespace kiln
