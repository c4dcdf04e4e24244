// Extrema, bits, selections, and what undoes itself.
#include <cmath>

#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using namespace pattern;

Instruction* Undo(Instruction* i) { return i->operand(0)->Is(i->opcode()) ? i->operand(0)->operand(0) : nullptr; }

// One value, or the same operation on the same values.
bool IsSameValue(const Instruction* a, const Instruction* b) {
  return a == b || (a->IsElementwise() && a->opcode() == b->opcode() && a->shape() == b->shape() &&
                    a->operands() == b->operands() && a->attrs() == b->attrs());
}

const Rule kRules[] = {
    // NaN included.
    {"maximum-of-lowest",
     {Opcode::Maximum},
     kFloats,
     Numerics::Exact,
     "z = $T[] constant(-inf)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] maximum(p, b)",
     "z = $T[] constant(-1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] maximum(p, b)",
     [](Instruction* i) { return Beside(i, -INFINITY); }},
    {"minimum-of-highest",
     {Opcode::Minimum},
     kFloats,
     Numerics::Exact,
     "z = $T[] constant(inf)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] minimum(b, p)",
     "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] minimum(p, b)",
     [](Instruction* i) { return Beside(i, INFINITY); }},
    {"extremum-of-one",
     {Opcode::Maximum, Opcode::Minimum},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] maximum(p, p)",
     "ROOT r = $T[4,6] minimum(p, q)",
     [](Instruction* i) { return i->operand(0) == i->operand(1) ? i->operand(0) : nullptr; }},
    {"and-true",
     {Opcode::And},
     kPred,
     Numerics::Exact,
     "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] and(p, b)",
     "ROOT r = $T[4,6] and(p, q)",
     [](Instruction* i) { return Beside(i, 1); }},
    {"and-zero",
     {Opcode::And},
     kInts | kPred,
     Numerics::Exact,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] and(p, b)",
     "ROOT r = $T[4,6] and(p, q)",
     [](Instruction* i) { return Beside(i, 0) ? Filled(i, 0) : nullptr; }},
    {"or-true",
     {Opcode::Or},
     kPred,
     Numerics::Exact,
     "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] or(p, b)",
     "ROOT r = $T[4,6] or(p, q)",
     [](Instruction* i) { return Beside(i, 1) ? Filled(i, 1) : nullptr; }},
    {"xor-same",
     {Opcode::Xor},
     kInts | kPred,
     Numerics::Exact,
     "ROOT r = $T[4,6] xor(p, p)",
     "ROOT r = $T[4,6] xor(p, q)",
     [](Instruction* i) { return IsSameValue(i->operand(0), i->operand(1)) ? Filled(i, 0) : nullptr; }},
    {"or-zero",
     {Opcode::Or, Opcode::Xor},
     kInts | kPred,
     Numerics::Exact,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] or(p, b)",
     "ROOT r = $T[4,6] xor(p, q)",
     [](Instruction* i) { return Beside(i, 0); }},
    {"not-not",
     {Opcode::Not},
     kInts | kPred,
     Numerics::Exact,
     "n = $T[4,6] not(p)\n ROOT r = $T[4,6] not(n)",
     "ROOT r = $T[4,6] not(p)",
     Undo},
    {"negate-negate",
     {Opcode::Negate},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "n = $T[4,6] negate(p)\n ROOT r = $T[4,6] negate(n)",
     "n = $T[4,6] copy(p)\n ROOT r = $T[4,6] negate(n)",
     Undo},
    {"select-of-one",
     {Opcode::Select},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] select(k, p, p)",
     "ROOT r = $T[4,6] select(k, p, q)",
     [](Instruction* i) { return i->operand(1) == i->operand(2) ? i->operand(1) : nullptr; }},
    {"select-known",
     {Opcode::Select},
     kAllTypes,
     Numerics::Exact,
     "z = pred[] constant(true)\n b = pred[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] select(b, p, q)",
     "ROOT r = $T[4,6] select(k, p, q)",
     [](Instruction* i) -> Instruction* {
       const Literal* p = SplatOf(i->operand(0));
       return p ? i->operand(p->Get(0).i ? 1 : 2) : nullptr;
     }},
};

}  // namespace

absl::Span<const Rule> LogicRules() { return kRules; }

}  // namespace kiln
