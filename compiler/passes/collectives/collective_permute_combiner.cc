// Small permutations of one kind travel together.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/combine.h"

namespace kiln {

absl::StatusOr<bool> CollectivePermuteCombiner(Module& m, PassContext& ctx) {
  return CombineCollectives(m, ctx, Opcode::CollectivePermute, ctx.combined.permute,
                            [](const Instruction* i) -> std::optional<std::string> {
                              if (!i->attrs().source_target_pairs) return std::nullopt;
                              return i->attrs().source_target_pairs->text + "/" + GroupingKey(i);
                            });
}

}  // namespace kiln
