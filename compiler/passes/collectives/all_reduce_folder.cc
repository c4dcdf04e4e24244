// A reduction between devices of a reduction between devices, over groups that complement each other, is one over their
// product.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {

absl::StatusOr<bool> AllReduceFolder(Module& m, PassContext& ctx) {
  const auto product = [](const Instruction* i) -> Groups {
    if (!PlainAllReduce(i) || !PlainAllReduce(i->operand(0)) || i->operand(0)->users().size() != 1) return {};
    const Instruction* inner = i->operand(0);
    if (!NumberedAlike(i, inner) || TakesAllPartitions(i)) return {};
    if (!ReducerOf(i) || ReducerOf(i) != ReducerOf(inner)) return {};
    const Groups a = WrittenGroups(inner), b = WrittenGroups(i);
    if (a.empty() || b.empty()) return {};
    for (const Ints& g : a)
      if (g.size() != a[0].size()) return {};
    return ProductOf(a, b);
  };
  return ExpandEach(
      m, ctx, [&](const Instruction* i) { return !product(i).empty(); },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        Instruction* all = i->parent()->AddClone(i, i->shape(), {i->operand(0)->operand(0)});
        all->mutable_attrs().replica_groups = GroupsText(product(i));
        return all;
      });
}

}  // namespace kiln
