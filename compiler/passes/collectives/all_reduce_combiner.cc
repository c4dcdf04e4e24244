// Small all-reduces of one reducer and one grouping travel together.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/combine.h"

namespace kiln {

absl::StatusOr<bool> AllReduceCombiner(Module& m, PassContext& ctx) {
  return CombineCollectives(m, ctx, Opcode::AllReduce, ctx.combined.all_reduce,
                            [](const Instruction* i) -> std::optional<std::string> {
                              const std::optional<std::string> reducer = ReducerKey(i);
                              if (!reducer) return std::nullopt;
                              return *reducer + "/" + GroupingKey(i);
                            });
}

}  // namespace kiln
