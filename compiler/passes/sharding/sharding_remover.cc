// Calls that only carry a sharding stand for their operand: each partition computes the whole program.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> ShardingRemover(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        if (!i->Is(Opcode::CustomCall) || i->operand_count() != 1) return false;
        const std::string& t = i->attrs().custom_call_target->text;
        return (t == "Sharding" || t == "SPMDFullToShardShape" || t == "SPMDShardToFullShape") &&
               i->operand(0)->shape().Compatible(i->shape());
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        i->mutable_attrs().sharding.reset();
        return i->operand(0);
      });
}

}  // namespace kiln
