// Reductions between devices whose result depends on the order of the members get one: the group's. They become
// gathers, and sums that each device makes of what it gathered. Integer sums and other combinations that no order can
// change stay as they are.
#include "compiler/hlo/exchange.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/collective_gathers.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

bool Wanted(const Instruction* i) { return IsSynchronousCollective(i) && i->attrs().to_apply && OrderMatters(i); }

}  // namespace

absl::StatusOr<bool> CollectiveDeterminismExpander(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Wanted, [&](Instruction* i) { return AsGather(i, m); });
}

}  // namespace kiln
