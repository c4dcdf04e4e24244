// Batching dimensions of gathers and scatters become indices that count up.
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/indexed_form.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> BatchedGatherScatterNormalizer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        const auto some = [](const std::optional<Ints>& v) { return v && !v->empty(); };
        return (i->Is(Opcode::Gather) && some(i->attrs().operand_batching_dims)) ||
               (i->Is(Opcode::Scatter) && some(i->attrs().input_batching_dims));
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return WithoutBatching(i); });
}

}  // namespace kiln
