// Reshapes and transposes move below elementwise operations, where there is one instead of several.
//
// Fires when every operand carries an equivalent one, or is a constant or the broadcast of a scalar, which take any
// shape for free; at least one must carry it, and it must have no other user (else nothing is saved).
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool Moves(const Instruction* i) { return i->Is(Opcode::Reshape) || i->Is(Opcode::Transpose); }

bool AnyShape(const Instruction* i) {
  return (i->Is(Opcode::Broadcast) && i->operand(0)->shape().IsScalar()) ||
         (i->Is(Opcode::Constant) && i->shape().IsArray() && i->literal().IsSplat());
}

// The operand whose reshape or transpose the others repeat.
const Instruction* Leader(const Instruction* i) {
  for (const Instruction* o : i->operands())
    if (Moves(o)) return o;
  return nullptr;
}

bool Equivalent(const Instruction* a, const Instruction* b) {
  return a->opcode() == b->opcode() && a->operand(0)->shape().dims() == b->operand(0)->shape().dims() &&
         a->shape().dims() == b->shape().dims() && a->attrs().dimensions == b->attrs().dimensions;
}

bool Wanted(const Instruction* i) {
  if (!i->IsElementwise() || i->operands().empty() || !i->shape().IsArray() || i->shape().HasDynamic()) return false;
  const Instruction* leader = Leader(i);
  if (!leader || leader->operand(0)->shape().layout()) return false;
  for (const Instruction* o : i->operands()) {
    if (o->shape().dims() != i->shape().dims()) return false;
    if (AnyShape(o)) continue;
    if (!Moves(o) || !Equivalent(o, leader) || o->users().size() != 1) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> ReshapeMover(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const Instruction* leader = Leader(i);
    const Ints& dims = leader->operand(0)->shape().dims();
    std::vector<Instruction*> operands;
    for (Instruction* o : i->operands()) {
      if (Moves(o)) {
        operands.push_back(o->operand(0));
      } else if (o->Is(Opcode::Broadcast)) {
        operands.push_back(BroadcastTo(o->operand(0), dims).get());
      } else {
        Literal one(Shape::Scalar(o->shape().type()));
        one.Set(0, o->literal().Get(0));
        operands.push_back(BroadcastTo(i->parent()->AddConstant(one), dims).get());
      }
    }
    Instruction* inner = i->parent()->AddClone(i, Shape::Array(i->shape().type(), dims), operands);
    return i->parent()->AddClone(leader, i->shape(), {inner});
  });
}

}  // namespace kiln
