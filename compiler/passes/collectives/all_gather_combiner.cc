// Small all-gathers along one dimension and of one grouping travel together.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/combine.h"

namespace kiln {

absl::StatusOr<bool> AllGatherCombiner(Module& m, PassContext& ctx) {
  return CombineCollectives(m, ctx, Opcode::AllGather, ctx.combined.all_gather,
                            [](const Instruction* i) -> std::optional<std::string> {
                              return AttrText(*i->attrs().dimensions) + "/" + GroupingKey(i);
                            });
}

}  // namespace kiln
