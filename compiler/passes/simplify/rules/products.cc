// Products: signs, constants that meet, and roots and exponentials that multiply.
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using namespace pattern;

// Both operands as f of something.
bool BothAre(const Instruction* i, Opcode f) { return i->operand(0)->Is(f) && i->operand(1)->Is(f); }

// Of x = a*K.
bool IsScaled(Instruction* x, Instruction** a, Instruction** k) {
  if (!x->Is(Opcode::Multiply) || !MatchEither(x, Any(a), Any(k))) return false;
  if (IsKnown(*a)) std::swap(*a, *k);
  return IsKnown(*k) && !IsKnown(*a);
}

// (a*K1)*K2.
Instruction* MultiplyTwice(Instruction* i) {
  Instruction *a, *k, *x = i->operand(0), *y = i->operand(1);
  if (IsKnown(x)) std::swap(x, y);
  if (!IsKnown(y) || !IsScaled(x, &a, &k)) return nullptr;
  Instruction* product = OfConstants(Opcode::Multiply, k, y);
  return product ? (Expr(a) * product).get() : nullptr;
}

// (a*K1)*(b*K2). Not of floats: K keeps a and b in range, and a square of what is at most 1 at most 1.
Instruction* MultiplyScaled(Instruction* i) {
  Instruction *a, *b, *k, *l;
  if (!IsScaled(i->operand(0), &a, &k) || !IsScaled(i->operand(1), &b, &l)) return nullptr;
  Instruction* product = OfConstants(Opcode::Multiply, k, l);
  return product ? (Expr(a) * b * product).get() : nullptr;
}

// (a*K)*broadcast(b) is a*broadcast(b*K): the small side multiplies.
Instruction* MultiplySmallSide(Instruction* i) {
  for (int64_t side = 0; side < 2; ++side) {
    Instruction *scaled = i->operand(side), *wide = i->operand(1 - side);
    if (!scaled->Is(Opcode::Multiply) || !wide->Is(Opcode::Broadcast) || IsKnown(wide) || HasOwnLayout(i)) continue;
    Instruction* b = wide->operand(0);
    for (int64_t k = 0; k < 2; ++k) {
      Instruction *scalar = ScalarOf(scaled->operand(k)), *a = scaled->operand(1 - k);
      if (!scalar || IsKnown(a) || b->shape().ElementCount() >= i->shape().ElementCount()) continue;
      const Expr small = Expr(b) * Spread(scalar, b->shape().dims());
      return (Expr(a) * BroadcastTo(small, i->shape().dims(), *wide->attrs().dimensions)).get();
    }
  }
  return nullptr;
}

// The x of f(x)*f(x), one node or two.
Instruction* SquaredOperand(const Instruction* i, Opcode f) {
  if (!BothAre(i, f)) return nullptr;
  Instruction* x = i->operand(0)->operand(0);
  return x == i->operand(1)->operand(0) ? x : nullptr;
}

// convert(flag) * x chooses between x and 0.
Instruction* MultiplyFlag(Instruction* i) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction* flag = i->operand(k);
    if (flag->Is(Opcode::Convert) && flag->operand(0)->shape().type() == PrimitiveType::Pred)
      return SelectExpr(flag->operand(0), i->operand(1 - k), Filled(i, 0)).get();
  }
  return nullptr;
}

constexpr char kTwice[] =
    "c = $T[] constant(3)\n d = $T[4,6] broadcast(c), dimensions={}\n y = $T[] constant(2)\n"
    " e = $T[4,6] broadcast(y), dimensions={}\n a = $T[4,6] multiply(p, d)\n ROOT r = $T[4,6] multiply(a, e)";
constexpr char kConstants[] =
    "c = $T[] constant(3)\n d = $T[4,6] broadcast(c), dimensions={}\n y = $T[] constant(2)\n"
    " e = $T[4,6] broadcast(y), dimensions={}\n a = $T[4,6] multiply(p, d)\n b = $T[4,6] multiply(q, e)\n"
    " ROOT r = $T[4,6] multiply(a, b)";
constexpr char kConstantAndVariable[] =
    "c = $T[] constant(3)\n d = $T[4,6] broadcast(c), dimensions={}\n a = $T[4,6] multiply(p, d)\n"
    " ROOT r = $T[4,6] multiply(a, q)";
constexpr char kSmall[] =
    "c = $T[] constant(3)\n d = $T[4,6] broadcast(c), dimensions={}\n a = $T[4,6] multiply(p, d)\n"
    " w = $T[4,6] broadcast(s), dimensions={}\n ROOT r = $T[4,6] multiply(a, w)";
constexpr char kFlag[] = "c = $T[4,6] convert(k)\n ROOT r = $T[4,6] multiply(p, c)";
constexpr char kNoFlag[] = "c = s16[4,6] convert(k)\n d = $T[4,6] convert(c)\n ROOT r = $T[4,6] multiply(p, d)";

const Rule kRules[] = {
    {"multiply-zero",
     {Opcode::Multiply},
     kInts | kPred,
     Numerics::Exact,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] multiply(p, b)",
     "ROOT r = $T[4,6] multiply(p, q)",
     [](Instruction* i) { return Beside(i, 0) ? Filled(i, 0) : nullptr; }},
    {"multiply-zero-finite",
     {Opcode::Multiply},
     kFloats,
     Numerics::Finite,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] multiply(p, b)",
     "ROOT r = $T[4,6] multiply(p, q)",
     [](Instruction* i) { return Beside(i, 0) ? Filled(i, 0) : nullptr; }},
    {"multiply-negations",
     {Opcode::Multiply},
     kInts | kFloats,
     Numerics::Exact,
     "a = $T[4,6] negate(p)\n b = $T[4,6] negate(q)\n ROOT r = $T[4,6] multiply(a, b)",
     "a = $T[4,6] negate(p)\n ROOT r = $T[4,6] multiply(a, q)",
     [](Instruction* i) -> Instruction* {
       if (!BothAre(i, Opcode::Negate)) return nullptr;
       return (Expr(i->operand(0)->operand(0)) * i->operand(1)->operand(0)).get();
     }},
    {"square-of-abs",
     {Opcode::Multiply},
     kInts | kFloats,
     Numerics::Exact,
     "a = $T[4,6] abs(p)\n ROOT r = $T[4,6] multiply(a, a)",
     "a = $T[4,6] abs(p)\n ROOT r = $T[4,6] multiply(a, p)",
     [](Instruction* i) -> Instruction* {
       Instruction* x = SquaredOperand(i, Opcode::Abs);
       return x && !IsComplex(x->shape().type()) ? (Expr(x) * x).get() : nullptr;
     }},
    {"multiply-constants", {Opcode::Multiply}, kInts, Numerics::Exact, kTwice, kConstantAndVariable, MultiplyTwice},
    {"multiply-constants-rounded", {Opcode::Multiply}, kFloats, Numerics::Range, kTwice, kConstants, MultiplyTwice},
    {"multiply-scaled", {Opcode::Multiply}, kInts, Numerics::Exact, kConstants, kConstantAndVariable, MultiplyScaled},
    {"multiply-small-side",
     {Opcode::Multiply},
     kInts,
     Numerics::Exact,
     kSmall,
     kConstantAndVariable,
     MultiplySmallSide},
    {"multiply-small-side-rounded",
     {Opcode::Multiply},
     kFloats,
     Numerics::Range,
     kSmall,
     kConstantAndVariable,
     MultiplySmallSide},
    {"multiply-exponentials",
     {Opcode::Multiply},
     kFloats,
     Numerics::Range,
     "a = $T[4,6] exponential(p)\n b = $T[4,6] exponential(q)\n ROOT r = $T[4,6] multiply(a, b)",
     "a = $T[4,6] exponential(p)\n ROOT r = $T[4,6] multiply(a, q)",
     [](Instruction* i) -> Instruction* {
       if (!BothAre(i, Opcode::Exponential)) return nullptr;
       return Unary(Opcode::Exponential, Expr(i->operand(0)->operand(0)) + i->operand(1)->operand(0)).get();
     }},
    {"square-of-root",
     {Opcode::Multiply},
     kFloats,
     Numerics::Range,
     "a = $T[4,6] abs(p)\n b = $T[4,6] sqrt(a)\n ROOT r = $T[4,6] multiply(b, b)",
     "b = $T[4,6] sqrt(p)\n ROOT r = $T[4,6] multiply(b, b)",
     [](Instruction* i) {
       Instruction* x = SquaredOperand(i, Opcode::Sqrt);
       return x && IsNeverNegative(x) ? x : nullptr;
     }},
    {"square-of-inverse-root",
     {Opcode::Multiply},
     kFloats,
     Numerics::Range,
     "a = $T[4,6] abs(p)\n b = $T[4,6] rsqrt(a)\n ROOT r = $T[4,6] multiply(b, b)",
     "b = $T[4,6] rsqrt(p)\n ROOT r = $T[4,6] multiply(b, b)",
     [](Instruction* i) {
       Instruction* x = SquaredOperand(i, Opcode::Rsqrt);
       return x && IsNeverNegative(x) ? (1.0 / Expr(x)).get() : nullptr;
     }},
    {"multiply-flag", {Opcode::Multiply}, kInts, Numerics::Exact, kFlag, kNoFlag, MultiplyFlag},
    // NaN, infinities and signs go where the flag is not set: XLA does this unasked.
    {"multiply-flag-finite", {Opcode::Multiply}, kFloats, Numerics::Finite, kFlag, kNoFlag, MultiplyFlag},
};

}  // namespace

absl::Span<const Rule> ProductRules() { return kRules; }

}  // namespace kiln
