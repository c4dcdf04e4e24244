// Cumulative reduce-windows over n elements, n * n steps as written, by blocks of 16: cumulate inside each block,
// cumulate the blocks' totals (again by blocks, until one is left), and combine.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/cumulative.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> ReduceWindowRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return CumulativeDim(i) >= 0; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        return Cumulate(i->operand(0), i->operand(1), *i->attrs().to_apply, CumulativeDim(i)).get();
      });
}

}  // namespace kiln
