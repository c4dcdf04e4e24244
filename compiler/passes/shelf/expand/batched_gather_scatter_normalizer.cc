// Batching dimensions of gathers and scatters become indices that count up.
#include "compiler/hlo/batching_dims.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/expand/indexed_form.h"

namespace kiln {

absl::StatusOr<bool> BatchedGatherScatterNormalizer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        if (!i->Is(Opcode::Gather) && !i->Is(Opcode::Scatter)) return false;
        // A dimension cannot have two indices.
        return !BatchingDims(*i).empty() && !IndexesBatchingDims(*i);
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return WithoutBatching(i); });
}

}  // namespace kiln
