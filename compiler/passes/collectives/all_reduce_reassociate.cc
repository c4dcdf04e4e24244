// The sum of two reductions between the same devices is one reduction of the sum; likewise for other operations that
// are the reduction's own. Slices, reshapes, padding with the identity and conversions to a wider type may stand
// between, and so may equal dynamic slices, which then take their part of the one reduction.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

// A conversion to a wider type that `op` may come before: exact, and for integers without a result that would wrap in
// the narrow type.
bool MayConvertFirst(Opcode op, const Instruction* convert) {
  if (!convert->Is(Opcode::Convert)) return false;
  const TypeInfo &from = InfoOf(convert->operand(0)->shape().type()), &to = InfoOf(convert->shape().type());
  if (from.cls != to.cls || from.bits >= to.bits) return false;
  if (IsFloat(from.type)) return from.exponent_bits <= to.exponent_bits && from.mantissa_bits <= to.mantissa_bits;
  return IsIntegral(from.type) && op != Opcode::Add && op != Opcode::Multiply;
}

// The reduction behind one operand of `op`, through what only moves elements; null if there is none that is used once.
Instruction* ReductionBehind(Opcode op, Instruction* i) {
  if (i->Is(Opcode::DynamicSlice)) {
    if (i->users().size() != 1) return nullptr;
    i = i->operand(0);
  } else {
    for (; !i->Is(Opcode::AllReduce); i = i->operand(0)) {
      const bool moves = i->Is(Opcode::Reshape) || i->Is(Opcode::Slice) || MayConvertFirst(op, i) ||
                         (i->Is(Opcode::Pad) && IsIdentityOf(op, i->shape().type(), i->operand(1)));
      if (!moves || i->users().size() != 1) return nullptr;
    }
  }
  return PlainAllReduce(i) && i->users().size() == 1 && ReducerOf(i) == op ? i : nullptr;
}

bool EqualSlices(const Instruction* a, const Instruction* b) {
  return b->Is(Opcode::DynamicSlice) && a->operand(0)->shape() == b->operand(0)->shape() && a->attrs() == b->attrs() &&
         std::equal(a->operands().begin() + 1, a->operands().end(), b->operands().begin() + 1, b->operands().end());
}

bool Reassociates(const Instruction* i) {
  if (i->operand_count() != 2 || !i->HasTrait(Commutative) || !i->shape().IsArray()) return false;
  const Instruction *left = i->operand(0), *right = i->operand(1);
  const Instruction *a = ReductionBehind(i->opcode(), i->operand(0)), *b = ReductionBehind(i->opcode(), i->operand(1));
  if (!a || !b || !NumberedAlike(a, b) || WrittenGroups(a) != WrittenGroups(b) || !MayBecomeOne(a, b)) return false;
  if (left->Is(Opcode::DynamicSlice) || right->Is(Opcode::DynamicSlice))
    return left->Is(Opcode::DynamicSlice) && EqualSlices(left, right);
  // Padding and wider types must not make the one reduction longer than the two.
  return a->shape().ByteSize() + (a == b ? 0 : b->shape().ByteSize()) >= i->shape().ByteSize();
}

// The operations between `i` and `all`, on what `all` reduces.
Instruction* BeforeReduction(const Instruction* i, const Instruction* all) {
  if (i == all) return all->operand(0);
  std::vector<Instruction*> operands = i->operands();
  operands[0] = BeforeReduction(i->operand(0), all);
  return i->parent()->AddClone(i, i->shape(), operands);
}

}  // namespace

absl::StatusOr<bool> AllReduceReassociate(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Reassociates, [&](Instruction* i) -> absl::StatusOr<Instruction*> {
    Computation* c = i->parent();
    Instruction *a = ReductionBehind(i->opcode(), i->operand(0)), *b = ReductionBehind(i->opcode(), i->operand(1));
    if (!i->operand(0)->Is(Opcode::DynamicSlice)) {
      Instruction* local =
          c->AddClone(i, i->shape(), {BeforeReduction(i->operand(0), a), BeforeReduction(i->operand(1), b)});
      Instruction* all = c->AddClone(a, i->shape(), {local});
      if (a->shape().type() != i->shape().type())
        all->mutable_attrs().to_apply = ScalarFunction(&m, i->opcode(), i->shape().type());
      return all;
    }
    Instruction* local = c->AddClone(i, a->shape(), {a->operand(0), b->operand(0)});
    std::vector<Instruction*> operands = i->operand(0)->operands();
    operands[0] = c->AddClone(a, a->shape(), {local});
    return c->AddClone(i->operand(0), i->shape(), operands);
  });
}

}  // namespace kiln
