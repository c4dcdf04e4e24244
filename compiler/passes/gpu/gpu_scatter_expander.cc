// Scatters that GPU memory cannot update atomically become loops: elements of more than 64 bits, and several arrays at
// once, unless the indices are known to be unique.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/scalar_body.h"
#include "compiler/passes/expand/scatter_loop.h"

namespace kiln {

absl::StatusOr<bool> GpuScatterExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        if (!i->Is(Opcode::Scatter) || i->attrs().unique_indices.value_or(false)) return false;
        const bool wide = ByteWidth(i->operand(0)->shape().type()) > 8;
        return (wide || i->operand_count() > 3) && IsScalarBody(*i->attrs().to_apply) &&
               i->operands().back()->shape().ElementCount() > 0;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return ScatterAsLoop(i); });
}

}  // namespace kiln
