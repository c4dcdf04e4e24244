// Small reduce-scatters of one reducer, dimension and grouping travel together.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/combine.h"

namespace kiln {

absl::StatusOr<bool> ReduceScatterCombiner(Module& m, PassContext& ctx) {
  return CombineCollectives(m, ctx, Opcode::ReduceScatter, ctx.combined.reduce_scatter,
                            [](const Instruction* i) -> std::optional<std::string> {
                              const std::optional<std::string> reducer = ReducerKey(i);
                              if (!reducer) return std::nullopt;
                              return *reducer + "/" + AttrText(*i->attrs().dimensions) + "/" + GroupingKey(i);
                            });
}

}  // namespace kiln
