// Calls that only carry a sharding stand for their operand: each partition computes the whole program.
#include "compiler/hlo/annotation.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> ShardingRemover(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return (IsShardingAnnotation(*i) || BoundaryOf(*i) != Boundary::kNone) && i->operand_count() == 1 &&
               i->operand(0)->shape().Compatible(i->shape());
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        i->mutable_attrs().sharding.reset();
        return i->operand(0);
      });
}

}  // namespace kiln
