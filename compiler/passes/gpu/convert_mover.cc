// Data moves in its narrow form: widening conversions go below reshapes, transposes, slices, reversals, pads and
// concatenations, narrowing ones above these and above broadcasts. A value is widened before it is repeated, as algsimp
// has it too. Constants beside the data are written in its type, where they lose nothing by it.
#include <algorithm>

#include "compiler/eval/evaluator.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

int Bits(const Instruction* i) { return InfoOf(i->shape().type()).bits; }

bool Widens(const Instruction* i) {
  return i->Is(Opcode::Convert) && !i->shape().HasDynamic() && Bits(i->operand(0)) < Bits(i) &&
         Bits(i->operand(0)) >= 8;
}

bool Narrows(const Instruction* i) {
  return i->Is(Opcode::Convert) && !i->shape().HasDynamic() && Bits(i->operand(0)) > Bits(i) && Bits(i) >= 8;
}

bool HasOneUser(const Instruction* i) { return i->users().size() == 1; }

// A widening conversion among the operands, of which all others are, too, from the same type; or they are constants.
const Instruction* WideningOperand(const Instruction* i) {
  const Instruction* widening = nullptr;
  for (const Instruction* o : i->operands()) {
    if (o->Is(Opcode::Constant)) continue;
    // A concatenation may hold one value several times.
    const bool here = std::all_of(o->users().begin(), o->users().end(), [&](const Instruction* u) { return u == i; });
    if (!Widens(o) || !here) return nullptr;
    if (widening && o->operand(0)->shape().type() != widening->operand(0)->shape().type()) return nullptr;
    widening = o;
  }
  return widening;
}

Shape Typed(const Shape& s, PrimitiveType t) {
  Shape out = s;
  out.set_type(t);
  return out;
}

// `value` as type `t`, by way of an instruction that does not stay; nothing if the evaluator cannot.
std::optional<Literal> ConvertedLiteral(Computation* c, const Literal& value, PrimitiveType t) {
  Instruction* from = c->AddConstant(value);
  Instruction* convert = c->Add(Opcode::Convert, Typed(value.shape(), t), {from});
  absl::StatusOr<Literal> out = EvaluateInstruction(*convert, {&value});
  c->Remove(convert);
  c->Remove(from);
  return out.ok() ? std::optional(std::move(*out)) : std::nullopt;
}

Instruction* ConstantLike(const Instruction* i, Literal value) {
  const Shape shape = Typed(i->shape(), value.type());
  Instruction* constant = i->parent()->AddConstant(std::move(value));
  constant->mutable_shape() = shape;
  return constant;
}

// `i` as type `t`: a constant again if it is one.
Instruction* Converted(Instruction* i, PrimitiveType t) {
  if (i->Is(Opcode::Constant))
    if (std::optional<Literal> value = ConvertedLiteral(i->parent(), i->literal(), t))
      return ConstantLike(i, std::move(*value));
  return i->parent()->Add(Opcode::Convert, Typed(i->shape(), t), {i});
}

// mover(widen(x), ...) as widen(mover(x, ...)); null if a constant does not fit the narrow type.
Instruction* MovedNarrow(Instruction* i) {
  const Instruction* widening = WideningOperand(i);
  const PrimitiveType narrow = widening->operand(0)->shape().type();
  std::vector<Instruction*> operands;
  for (Instruction* o : i->operands()) {
    if (!o->Is(Opcode::Constant)) {
      operands.push_back(o->operand(0));
      continue;
    }
    const std::optional<Literal> value = ConvertedLiteral(i->parent(), o->literal(), narrow);
    if (!value || ConvertedLiteral(i->parent(), *value, o->shape().type()) != o->literal()) return nullptr;
    operands.push_back(ConstantLike(o, *value));
  }
  Instruction* moved = i->parent()->AddClone(i, Typed(i->shape(), narrow), operands);
  return i->parent()->AddClone(widening, i->shape(), {moved});
}

bool IsWanted(const Instruction* i) {
  if (i->Is(Opcode::Broadcast)) return false;
  if (i->HasTrait(Moving)) return !i->shape().HasDynamic() && WideningOperand(i);
  if (!Narrows(i) || !i->operand(0)->HasTrait(Moving) || !HasOneUser(i->operand(0))) return false;
  return i->operand(0)->operand_count() > 1 || !i->operand(0)->operand(0)->Is(Opcode::Constant);
}

}  // namespace

absl::StatusOr<bool> ConvertMover(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, IsWanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    if (i->HasTrait(Moving)) return MovedNarrow(i);
    Instruction* mover = i->operand(0);
    std::vector<Instruction*> operands;
    for (Instruction* o : mover->operands()) operands.push_back(Converted(o, i->shape().type()));
    return i->parent()->AddClone(mover, i->shape(), operands);
  });
}

}  // namespace kiln
