// Calls that quantize by blocks, and products of what they give, as ordinary operations.
#include "compiler/hlo/block_scaling.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> BlockScalingRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, IsBlockScaling,
                    [](Instruction* i) { return BlockScalingOf(i, i->parent(), i->operands()); });
}

}  // namespace kiln
