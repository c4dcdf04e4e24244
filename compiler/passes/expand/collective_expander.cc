// Operations between devices as one primitive, an all-gather of equal blocks along a new first dimension, and ordinary
// HLO on what it gathers. On one device they need no exchange at all.
#include "compiler/hlo/exchange.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/collective_gathers.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> CollectiveExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [&](Instruction* i) { return IsSynchronousCollective(i) && !IsPlainGather(i, m); },
      [&](Instruction* i) { return AsGather(i, m); });
}

}  // namespace kiln
