// Batching dimensions of gathers and scatters become indices that count up.
#include <algorithm>

#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/indexed_form.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> BatchedGatherScatterNormalizer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        if (!i->Is(Opcode::Gather) && !i->Is(Opcode::Scatter)) return false;
        const Attributes& a = i->attrs();
        const Ints batching = a.operand_batching_dims.value_or(a.input_batching_dims.value_or(Ints()));
        const Ints& indexed = i->Is(Opcode::Gather) ? *a.start_index_map : *a.scatter_dims_to_operand_dims;
        // A dimension cannot have two indices.
        return !batching.empty() && std::none_of(batching.begin(), batching.end(), [&](int64_t d) {
          return std::find(indexed.begin(), indexed.end(), d) != indexed.end();
        });
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return WithoutBatching(i); });
}

}  // namespace kiln
