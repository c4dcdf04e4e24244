// Running reductions along very long lines, by pieces: a block takes each line of a scan, so few long lines would leave
// most of the device idle.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/cumulative.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> CumulativeSplitter(Module& m, PassContext& ctx) {
  constexpr int64_t kLongest = 4096, kPiece = 1024;
  return ExpandEach(
      m, ctx, [](Instruction* i) { return CumulativeDim(i, kLongest) >= 0; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        return Cumulate(i->operand(0), i->operand(1), *i->attrs().to_apply, CumulativeDim(i, kLongest), kPiece).get();
      });
}

}  // namespace kiln
