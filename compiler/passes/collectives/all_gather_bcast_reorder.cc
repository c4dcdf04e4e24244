// What was repeated before it is gathered is gathered first, so that less travels; where the gathered dimension is
// itself a repetition, nothing has to travel at all.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> AllGatherBcastReorder(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        if (!i->Is(Opcode::AllGather) || i->operand_count() != 1 || !i->shape().IsArray()) return false;
        const Instruction* b = i->operand(0);
        return b->Is(Opcode::Broadcast) && b->operand(0)->shape().ElementCount() < b->shape().ElementCount();
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        Instruction* b = i->operand(0);
        const Ints& mapped = *b->attrs().dimensions;
        const int64_t d = (*i->attrs().dimensions)[0];
        const auto at = std::find(mapped.begin(), mapped.end(), d);
        if (at == mapped.end()) return c->AddClone(b, i->shape(), {b->operand(0)});
        const int64_t place = at - mapped.begin();
        Shape gathered = b->operand(0)->shape();
        gathered.mutable_dims()[static_cast<size_t>(place)] = i->shape().dim(d);
        Instruction* gather = c->AddClone(i, gathered, {b->operand(0)});
        gather->mutable_attrs().dimensions = Ints{place};
        return c->AddClone(b, i->shape(), {gather});
      });
}

}  // namespace kiln
