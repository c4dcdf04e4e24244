// Data moves in its narrow form: widening conversions go below reshapes, transposes, slices and reversals, narrowing
// ones above these and above broadcasts. A value is widened before it is repeated, as algsimp has it too.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool Moves(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Reshape:
    case Opcode::Transpose:
    case Opcode::Slice:
    case Opcode::Broadcast:
    case Opcode::Reverse:
      return true;
    default:
      return false;
  }
}

bool Widens(const Instruction* i) {
  return i->Is(Opcode::Convert) && !i->shape().HasDynamic() &&
         InfoOf(i->operand(0)->shape().type()).bits < InfoOf(i->shape().type()).bits;
}

bool Narrows(const Instruction* i) {
  return i->Is(Opcode::Convert) && !i->shape().HasDynamic() &&
         InfoOf(i->operand(0)->shape().type()).bits > InfoOf(i->shape().type()).bits;
}

Shape Typed(const Shape& s, PrimitiveType t) {
  Shape out = s;
  out.set_type(t);
  return out;
}

}  // namespace

absl::StatusOr<bool> ConvertMover(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        if (i->Is(Opcode::Broadcast)) return false;
        if (Moves(i)) return Widens(i->operand(0)) && i->operand(0)->users().size() == 1;
        return Narrows(i) && Moves(i->operand(0)) && i->operand(0)->users().size() == 1 &&
               !i->operand(0)->operand(0)->Is(Opcode::Constant);
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        if (Moves(i)) {
          Instruction* narrow = i->operand(0)->operand(0);
          Instruction* moved = c->AddClone(i, Typed(i->shape(), narrow->shape().type()), {narrow});
          return c->AddClone(i->operand(0), i->shape(), {moved});
        }
        Instruction* mover = i->operand(0);
        Instruction* narrow = c->AddClone(i, Typed(mover->operand(0)->shape(), i->shape().type()), {mover->operand(0)});
        return c->AddClone(mover, i->shape(), {narrow});
      });
}

}  // namespace kiln
