// Powers, roots, exponentials and logarithms of one another.
#include <cmath>

#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using namespace pattern;

bool IsExponent(const Instruction* power, double exponent) {
  const Literal* e = power->Is(Opcode::Power) ? SplatOf(power->operand(1)) : nullptr;
  if (!e) return false;
  return IsFloat(e->type()) ? e->Get(0).re == exponent
                            : static_cast<double>(e->Get(0).i) == exponent && !IsUnsigned(e->type());
}

bool SameTypes(const Instruction* i) { return i->operand(0)->shape().type() == i->operand(1)->shape().type(); }

Instruction* PowerOfConstantExponent(Instruction* i) {
  if (!SameTypes(i)) return nullptr;
  const Expr x = i->operand(0);
  const Literal* e = SplatOf(i->operand(1));
  if (!e) return nullptr;
  const double exponent = IsFloat(e->type()) ? e->Get(0).re : static_cast<double>(e->Get(0).i);
  if (exponent == 0) return Filled(i, 1);
  if (exponent == 1) return x.get();
  if (exponent == 2) return (x * x).get();
  if (exponent == 3) return (x * (x * x)).get();
  return nullptr;
}

// x^1.5 is x * sqrt(x), x^-2.5 is 1 / (x * x * sqrt(x)): a general power takes ten times as long.
Instruction* PowerOfHalves(Instruction* i) {
  constexpr double kMost = 4.5;
  const Literal* e = SameTypes(i) ? SplatOf(i->operand(1)) : nullptr;
  if (!e || !IsNeverNegative(i->operand(0))) return nullptr;
  const double exponent = e->Get(0).re, size = std::fabs(exponent);
  if (size > kMost || std::fabs(size - std::floor(size)) != 0.5) return nullptr;
  const Expr x = i->operand(0);
  if (exponent == -0.5) return Unary(Opcode::Rsqrt, x).get();
  Expr product = Unary(Opcode::Sqrt, x);
  for (double k = 1; k < size; ++k) product = x * product;
  return (exponent > 0 ? product : 1.0 / product).get();
}

// log(f(a)) for powers of a.
Instruction* LogarithmOfPower(Instruction* i) {
  Instruction* f = i->operand(0);
  if (f->Is(Opcode::Sqrt)) return (Unary(Opcode::Log, f->operand(0)) * 0.5).get();
  if (f->Is(Opcode::Rsqrt)) return (Unary(Opcode::Log, f->operand(0)) * -0.5).get();
  if (!f->Is(Opcode::Power) || !SameTypes(f) || !IsNeverNegative(f->operand(0))) return nullptr;
  // 0 * log(0) is not log(0^0); of a negative base, the logarithm of an even power is known and this is not.
  const Expr base = f->operand(0), exponent = f->operand(1);
  return SelectExpr(exponent == 0.0, exponent.Like(0), exponent * Unary(Opcode::Log, base)).get();
}

Instruction* InverseRootOfInverse(Instruction* i) {
  Instruction* x = i->operand(0);
  if (IsExponent(x, -2) && SameTypes(x) && IsNeverNegative(x->operand(0))) return x->operand(0);
  if (x->Is(Opcode::Divide) && IsAll(x->operand(0), 1) && IsNeverNegative(x->operand(1)))
    return Unary(Opcode::Sqrt, x->operand(1)).get();
  return nullptr;
}

const Rule kRules[] = {
    {"power-of-integers",
     {Opcode::Power},
     kInts,
     Numerics::Exact,
     "z = $T[] constant(3)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] power(p, b)",
     "ROOT r = $T[4,6] power(p, q)",
     PowerOfConstantExponent},
    {"power-zero",
     {Opcode::Power},
     kFloats,
     Numerics::Exact,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] power(p, b)",
     "ROOT r = $T[4,6] power(p, q)",
     [](Instruction* i) { return IsExponent(i, 0) ? Filled(i, 1) : nullptr; }},
    {"power-inverse",
     {Opcode::Power},
     kFloats,
     Numerics::Rounding,
     "z = $T[] constant(-1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] power(p, b)",
     "ROOT r = $T[4,6] power(p, q)",
     [](Instruction* i) { return IsExponent(i, -1) ? (1.0 / Expr(i->operand(0))).get() : nullptr; }},
    {"power-half",
     {Opcode::Power},
     kFloats,
     Numerics::Rounding,
     "z = $T[] constant(0.5)\n b = $T[4,6] broadcast(z), dimensions={}\n a = $T[4,6] abs(p)\n"
     " ROOT r = $T[4,6] power(a, b)",
     "z = $T[] constant(0.5)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] power(p, b)",
     [](Instruction* i) {
       const bool known = IsExponent(i, 0.5) && IsNeverNegative(i->operand(0));
       return known ? Unary(Opcode::Sqrt, i->operand(0)).get() : nullptr;
     }},
    {"power-of-halves",
     {Opcode::Power},
     kFloats,
     Numerics::Range,
     "z = $T[] constant(-1.5)\n b = $T[4,6] broadcast(z), dimensions={}\n a = $T[4,6] abs(p)\n"
     " ROOT r = $T[4,6] power(a, b)",
     "z = $T[] constant(1.5)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] power(p, b)",
     PowerOfHalves},
    {"power-of-exponential",
     {Opcode::Power},
     kFloats,
     Numerics::Range,
     "a = $T[4,6] exponential(p)\n ROOT r = $T[4,6] power(a, q)",
     "ROOT r = $T[4,6] power(p, q)",
     [](Instruction* i) -> Instruction* {
       if (!i->operand(0)->Is(Opcode::Exponential) || !SameTypes(i)) return nullptr;
       return Unary(Opcode::Exponential, Expr(i->operand(0)->operand(0)) * i->operand(1)).get();
     }},
    {"exponential-of-zero",
     {Opcode::Exponential},
     kFloats | kComplex,
     Numerics::Exact,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] exponential(b)",
     "ROOT r = $T[4,6] exponential(p)",
     [](Instruction* i) { return IsAll(i->operand(0), 0) ? Filled(i, 1) : nullptr; }},
    {"logarithm-of-exponential",
     {Opcode::Log},
     kFloats,
     Numerics::Finite,
     "a = $T[4,6] exponential(p)\n ROOT r = $T[4,6] log(a)",
     "ROOT r = $T[4,6] log(p)",
     [](Instruction* i) { return i->operand(0)->Is(Opcode::Exponential) ? i->operand(0)->operand(0) : nullptr; }},
    {"logarithm-of-power",
     {Opcode::Log},
     kFloats,
     Numerics::Range,
     "a = $T[4,6] sqrt(p)\n ROOT r = $T[4,6] log(a)",
     "a = $T[4,6] power(p, q)\n ROOT r = $T[4,6] log(a)",
     LogarithmOfPower},
    {"inverse-root-of-inverse",
     {Opcode::Rsqrt},
     kFloats,
     Numerics::Range,
     "a = $T[4,6] abs(p)\n z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n"
     " d = $T[4,6] divide(b, a)\n ROOT r = $T[4,6] rsqrt(d)",
     "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n d = $T[4,6] divide(b, p)\n"
     " ROOT r = $T[4,6] rsqrt(d)",
     InverseRootOfInverse},
    {"root-of-square",
     {Opcode::Sqrt},
     kFloats,
     Numerics::Finite,
     "a = $T[4,6] multiply(p, p)\n ROOT r = $T[4,6] sqrt(a)",
     "a = $T[4,6] multiply(p, q)\n ROOT r = $T[4,6] sqrt(a)",
     [](Instruction* i) -> Instruction* {
       Instruction* x = i->operand(0);
       const bool square = x->Is(Opcode::Multiply) && x->operand(0) == x->operand(1);
       return square ? Unary(Opcode::Abs, x->operand(0)).get() : nullptr;
     }},
    {"abs-of-never-negative",
     {Opcode::Abs},
     kInts | kFloats,
     Numerics::ZeroSign,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n m = $T[4,6] maximum(p, b)\n"
     " ROOT r = $T[4,6] abs(m)",
     "ROOT r = $T[4,6] abs(p)",
     [](Instruction* i) {
       Instruction* x = i->operand(0);
       return x->shape().type() == i->shape().type() && IsNeverNegative(x) ? x : nullptr;
     }},
};

}  // namespace

absl::Span<const Rule> PowerRules() { return kRules; }

}  // namespace kiln
