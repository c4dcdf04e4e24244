// Reductions of one element.
#include <cmath>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

using pattern::IsAll;

// The operation of a reducer (a, b) -> op(a, b), if it is that.
std::optional<Opcode> ReducerOf(const Instruction* i) {
  const Instruction* r = (*i->attrs().to_apply)->root();
  const bool plain = r->operand_count() == 2 && r->operand(0)->Is(Opcode::Parameter) &&
                     r->operand(1)->Is(Opcode::Parameter) && r->operand(0) != r->operand(1);
  return plain ? std::optional(r->opcode()) : std::nullopt;
}

bool IsIdentity(Opcode op, PrimitiveType t, const Instruction* initial) {
  switch (op) {
    case Opcode::Maximum:
      return IsFloat(t) && IsAll(initial, -INFINITY);
    case Opcode::Minimum:
      return IsFloat(t) && IsAll(initial, INFINITY);
    case Opcode::Multiply:
      return IsAll(initial, 1);
    case Opcode::Add:
      return IsAll(initial, 0);
    case Opcode::And:
      return t == PrimitiveType::Pred && IsAll(initial, 1);
    case Opcode::Or:
      return IsAll(initial, 0);
    default:
      return false;  // any other operation: no identity is known
  }
}

Instruction* OfExtentsOfOne(Instruction* i) {
  if (i->operand_count() != 2) return nullptr;
  for (int64_t d : *i->attrs().dimensions)
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  const std::optional<Opcode> op = ReducerOf(i);
  if (!op || !IsIdentity(*op, i->shape().type(), i->operand(1))) return nullptr;
  return ReshapeTo(i->operand(0), i->shape().dims()).get();
}

const Rule kRules[] = {
    // The sum of one element may turn -0 into 0: 0 + -0 is 0, and HLO leaves open whether the 0 is added.
    {"reduce-extent-one",
     {Opcode::Reduce},
     kAllTypes,
     Numerics::ZeroSign,
     "b = $T[4,1,6] reshape(p)\n z = $T[] constant(0)\n ROOT r = $T[4,6] reduce(b, z), dimensions={1}, to_apply=sum",
     "z = $T[] constant(0)\n ROOT r = $T[4] reduce(p, z), dimensions={1}, to_apply=sum",
     OfExtentsOfOne},
};

}  // namespace

absl::Span<const Rule> ReduceRules() { return kRules; }

}  // namespace kiln
