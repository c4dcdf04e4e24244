// Sums, products, quotients and powers with what leaves them as they are.
#include <cmath>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

using namespace pattern;

// The factor 1/v, if v is a power of two that is far from the ends of the range: then both are exact.
Instruction* DivideByPowerOfTwo(Instruction* i) {
  const Literal* divisor = SplatOf(i->operand(1));
  const PrimitiveType t = i->shape().type();
  if (!divisor || (t != PrimitiveType::F32 && t != PrimitiveType::F64)) return nullptr;
  constexpr int kMostExponent = 100;
  int exponent;
  const double v = divisor->Get(0).re;
  if (!std::isfinite(v) || v == 0 || std::fabs(std::frexp(v, &exponent)) != 0.5 || std::abs(exponent) >= kMostExponent)
    return nullptr;
  return (Expr(i->operand(0)) * (1 / v)).get();
}

Instruction* PowerOf(Instruction* i, double exponent) {
  const Literal* e = SplatOf(i->operand(1));
  return e && e->Get(0).re == exponent ? i->operand(0) : nullptr;
}

const Rule kRules[] = {
    {"add-zero",
     {Opcode::Add},
     kInts | kPred,
     Numerics::Exact,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] add(p, b)",
     "ROOT r = $T[4,6] add(p, q)",
     [](Instruction* i) { return Beside(i, 0); }},
    // x + -0 is x for every x; x + 0 is not, if x is -0.
    {"add-negative-zero",
     {Opcode::Add},
     kFloats,
     Numerics::Exact,
     "z = $T[] constant(-0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] add(b, p)",
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] add(p, b)",
     [](Instruction* i) { return Beside(i, -0.0); }},
    {"subtract-zero",
     {Opcode::Subtract},
     kInts | kFloats,
     Numerics::Exact,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] subtract(p, b)",
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] subtract(b, p)",
     [](Instruction* i) { return IsAll(i->operand(1), 0) ? i->operand(0) : nullptr; }},
    {"multiply-one",
     {Opcode::Multiply},
     kReal,
     Numerics::Exact,
     "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] multiply(p, b)",
     "ROOT r = $T[4,6] multiply(p, q)",
     [](Instruction* i) { return Beside(i, 1); }},
    {"divide-one",
     {Opcode::Divide},
     kInts | kFloats,
     Numerics::Exact,
     "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] divide(p, b)",
     "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] divide(b, p)",
     [](Instruction* i) { return IsAll(i->operand(1), 1) ? i->operand(0) : nullptr; }},
    {"divide-power-of-two",
     {Opcode::Divide},
     kFloats,
     Numerics::Exact,
     "z = f32[] constant(4)\n b = f32[4,6] broadcast(z), dimensions={}\n c = f32[4,6] convert(p)\n"
     " ROOT r = f32[4,6] divide(c, b)",
     "z = f32[] constant(3)\n b = f32[4,6] broadcast(z), dimensions={}\n c = f32[4,6] convert(p)\n"
     " ROOT r = f32[4,6] divide(c, b)",
     DivideByPowerOfTwo},
    {"square",
     {Opcode::Power},
     kFloats,
     Numerics::Exact,
     "z = $T[] constant(2)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] power(p, b)",
     "ROOT r = $T[4,6] power(p, q)",
     [](Instruction* i) -> Instruction* {
       Instruction* x = PowerOf(i, 2);
       return x ? (Expr(x) * Expr(x)).get() : nullptr;
     }},
    {"power-one",
     {Opcode::Power},
     kFloats,
     Numerics::Exact,
     "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] power(p, b)",
     "ROOT r = $T[4,6] power(p, q)",
     [](Instruction* i) { return PowerOf(i, 1); }},
    // As in XLA. The cube is rounded twice.
    {"cube",
     {Opcode::Power},
     kFloats,
     Numerics::Rounding,
     "z = $T[] constant(3)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] power(p, b)",
     "z = $T[] constant(0.5)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] power(p, b)",
     [](Instruction* i) -> Instruction* {
       Instruction* x = PowerOf(i, 3);
       return x ? (Expr(x) * Expr(x) * Expr(x)).get() : nullptr;
     }},
};

}  // namespace

absl::Span<const Rule> ArithmeticRules() { return kRules; }

}  // namespace kiln
