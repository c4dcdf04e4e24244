// A collective becomes its start and its done, so that a schedule can put work between them.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

struct Split {
  Opcode start, done;
  Shape state;
};

std::optional<Split> SplitOf(const Instruction* i) {
  const Shape context = Shape::Scalar(PrimitiveType::U32);
  if (i->operand_count() != 1 || !i->shape().IsArray()) return std::nullopt;
  switch (i->opcode()) {
    case Opcode::AllReduce:
      return Split{Opcode::AllReduceStart, Opcode::AllReduceDone, i->shape()};
    case Opcode::AllGather:
      return Split{Opcode::AllGatherStart, Opcode::AllGatherDone, Shape::Tuple({i->operand(0)->shape(), i->shape()})};
    case Opcode::CollectivePermute:
      return Split{Opcode::CollectivePermuteStart, Opcode::CollectivePermuteDone,
                   Shape::Tuple({i->operand(0)->shape(), i->shape(), context, context})};
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<bool> AsyncCollectiveCreator(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return SplitOf(i).has_value(); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Split split = *SplitOf(i);
        Instruction* start = i->parent()->Add(split.start, split.state, i->operands());
        start->mutable_attrs() = i->attrs();
        start->set_loc(i->loc());
        return i->parent()->Add(split.done, i->shape(), {start});
      });
}

}  // namespace kiln
