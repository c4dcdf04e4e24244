// Quotients: by constants, of quotients, by roots and exponentials; and integers by powers of two.
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using namespace pattern;

// x / K is x * (1/K).
Instruction* DivideByConstant(Instruction* i) {
  Instruction *x = i->operand(0), *k = i->operand(1);
  if (!IsKnown(k) || IsKnown(x)) return nullptr;
  if (Instruction* scalar = ScalarOf(k)) {
    const double inverse = RoundToType(i->shape().type(), 1 / scalar->literal().Get(0).re);
    const bool normal = std::isfinite(inverse) && inverse != 0;
    return normal ? (Expr(x) * inverse).get() : nullptr;
  }
  const bool spread = k->Is(Opcode::Broadcast);
  const Instruction* constant = spread ? k->operand(0) : k;
  if (!constant->Is(Opcode::Constant)) return nullptr;
  // At once: a quotient of constants would be divided again before it is folded.
  Literal inverses = constant->literal();
  for (int64_t at = 0; at < inverses.size(); ++at) {
    Element e = inverses.Get(at);
    e.re = RoundToType(i->shape().type(), 1 / e.re);
    inverses.Set(at, e);
  }
  Instruction* inverse = i->parent()->AddConstant(std::move(inverses));
  return (Expr(x) * Expr(spread ? Over(k, {inverse}) : inverse)).get();
}

// Flags over one number: its inverse where they are set. A number whose inverse is infinite leaves the range.
Instruction* DivideFlag(Instruction* i) {
  Instruction *flag = i->operand(0), *over = i->operand(1);
  if (!flag->Is(Opcode::Convert) || flag->operand(0)->shape().type() != PrimitiveType::Pred ||
      !over->Is(Opcode::Broadcast) || !over->operand(0)->shape().IsScalar() || IsKnown(over))
    return nullptr;
  return (Over(over, {(1.0 / Expr(over->operand(0))).get()}) * Expr(flag)).get();
}

// Quotients of quotients become one.
Instruction* DivideQuotient(Instruction* i) {
  Instruction *a = i->operand(0), *b = i->operand(1);
  const bool above = a->Is(Opcode::Divide), below = b->Is(Opcode::Divide);
  if (above && below) return ((Expr(a->operand(0)) * b->operand(1)) / (Expr(a->operand(1)) * b->operand(0))).get();
  if (above) return (Expr(a->operand(0)) / (Expr(a->operand(1)) * b)).get();
  if (below) return ((Expr(a) * b->operand(1)) / b->operand(0)).get();
  return nullptr;
}

// a / f(b) as a product, where 1/f is as easy as f.
Instruction* DivideByFunction(Instruction* i) {
  const Expr a = i->operand(0);
  Instruction* f = i->operand(1);
  switch (f->opcode()) {
    case Opcode::Exponential:
      if (i->operand(0)->Is(Opcode::Exponential))
        return Unary(Opcode::Exponential, Expr(i->operand(0)->operand(0)) - f->operand(0)).get();
      return (a * Unary(Opcode::Exponential, -Expr(f->operand(0)))).get();
    case Opcode::Power:
      return (a * Binary(Opcode::Power, f->operand(0), -Expr(f->operand(1)))).get();
    case Opcode::Sqrt:
      return HasOneUser(f) ? (a * Unary(Opcode::Rsqrt, f->operand(0))).get() : nullptr;
    case Opcode::Rsqrt:
      return HasOneUser(f) ? (a * Unary(Opcode::Sqrt, f->operand(0))).get() : nullptr;
    default:
      return nullptr;
  }
}

// a / s, where s repeats sums of exponentials (softmax): a * (1/s), one quotient for each sum. Narrow types would round
// the inverse too far, and take it in f32.
Instruction* DivideBySumOfExponentials(Instruction* i) {
  constexpr int64_t kFewer = 4;  // sums than quotients
  Instruction *a = i->operand(0), *over = i->operand(1);
  if (!over->Is(Opcode::Broadcast) || !over->operand(0)->Is(Opcode::Reduce)) return nullptr;
  Instruction* sum = over->operand(0);
  if (ReducerOf(sum) != Opcode::Add || !sum->operand(0)->Is(Opcode::Exponential) || sum->shape().HasDynamic() ||
      i->shape().ElementCount() < kFewer * sum->shape().ElementCount())
    return nullptr;
  const PrimitiveType t = i->shape().type(), wide = InfoOf(t).bits < 32 ? PrimitiveType::F32 : t;
  const Expr inverse = 1.0 / ConvertTo(wide, sum);
  Shape spread = over->shape();
  spread.set_type(wide);
  const Expr inverses = over->parent()->AddClone(over, spread, {inverse.get()});
  return ConvertTo(t, ConvertTo(wide, a) * inverses).get();
}

// n where every element of the integer `i` is 2^n.
std::optional<int> Exponent(const Instruction* i) {
  const Literal* l = SplatOf(i);
  if (!l) return std::nullopt;
  const int64_t v = l->Get(0).i;
  if (v <= 0 || (v & (v - 1)) != 0) return std::nullopt;
  return __builtin_ctzll(static_cast<uint64_t>(v));
}

// Of a value without its sign, with the sign put back: `f` rounds toward zero then.
template <typename F>
Instruction* WithSignApart(Instruction* x, const F& f) {
  const Expr negative = Expr(x) < 0;
  const Expr magnitude = f(SelectExpr(negative, -Expr(x), x));
  return SelectExpr(negative, -magnitude, magnitude).get();
}

Instruction* DivideByPowerOfTwo(Instruction* i) {
  const std::optional<int> n = Exponent(i->operand(1));
  if (!n || IsKnown(i->operand(0))) return nullptr;
  const auto shift = [&](Expr x) { return Binary(Opcode::ShiftRightLogical, x, x.Like(*n)); };
  return IsSigned(i->shape().type()) ? WithSignApart(i->operand(0), shift) : shift(i->operand(0)).get();
}

Instruction* RemainderByPowerOfTwo(Instruction* i) {
  const std::optional<int> n = Exponent(i->operand(1));
  if (!n || *n > 52 || IsKnown(i->operand(0))) return nullptr;  // Like() takes doubles
  const auto mask = [&](Expr x) { return x & x.Like(std::ldexp(1.0, *n) - 1); };
  return IsSigned(i->shape().type()) ? WithSignApart(i->operand(0), mask) : mask(i->operand(0)).get();
}

// The iota under (iota + K) % D, or iota % D, with K in *offset.
Instruction* IotaIn(Instruction* sum, int64_t* offset) {
  *offset = 0;
  if (sum->Is(Opcode::Iota)) return sum;
  Instruction *iota, *k;
  if (!sum->Is(Opcode::Add) || !MatchEither(sum, Any(&iota), Any(&k))) return nullptr;
  if (!iota->Is(Opcode::Iota)) std::swap(iota, k);
  const Literal* l = SplatOf(k);
  if (!iota->Is(Opcode::Iota) || !l) return nullptr;
  *offset = l->Get(0).i;
  return iota;
}

// iota % D is iota if it does not reach D, and (iota + D) % D is iota % D if the sum fits the type.
Instruction* RemainderOfIota(Instruction* i) {
  const Literal* divisor = SplatOf(i->operand(1));
  int64_t offset;
  Instruction* iota = IotaIn(i->operand(0), &offset);
  if (!divisor || !iota || iota->shape().rank() == 0) return nullptr;
  const int64_t d = divisor->Get(0).i, extent = iota->shape().dim(*iota->attrs().iota_dimension);
  if (d <= 0) return nullptr;
  if (offset == 0) return i->operand(0) == iota && extent <= d ? iota : nullptr;
  const int bits = static_cast<int>(BitWidth(i->shape().type())) - (IsSigned(i->shape().type()) ? 1 : 0);
  const bool fits = bits >= 63 || d + extent - 1 < (int64_t{1} << bits);
  return offset == d && fits && extent < (int64_t{1} << 62) - d ? Over(i, {iota, i->operand(1)}) : nullptr;
}

constexpr char kByThree[] =
    "z = $T[] constant(3)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] divide(p, b)";
constexpr char kQuotient[] = "ROOT r = $T[4,6] divide(p, q)";

const Rule kRules[] = {
    {"divide-integer-by-power-of-two",
     {Opcode::Divide},
     kInts,
     Numerics::Exact,
     "z = $T[] constant(8)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] divide(p, b)",
     kByThree,
     DivideByPowerOfTwo},
    {"divide-by-constant", {Opcode::Divide}, kFloats, Numerics::Rounding, kByThree, kQuotient, DivideByConstant},
    {"divide-flag",
     {Opcode::Divide},
     kFloats,
     Numerics::Range,
     "f = $T[4,6] convert(k)\n b = $T[4,6] broadcast(s), dimensions={}\n ROOT r = $T[4,6] divide(f, b)",
     "b = $T[4,6] broadcast(s), dimensions={}\n ROOT r = $T[4,6] divide(p, b)",
     DivideFlag},
    {"divide-by-function",
     {Opcode::Divide},
     kFloats,
     Numerics::Range,
     "b = $T[4,6] sqrt(q)\n ROOT r = $T[4,6] divide(p, b)",
     "b = $T[4,6] cbrt(q)\n ROOT r = $T[4,6] divide(p, b)",
     DivideByFunction},
    {"divide-by-sum-of-exponentials",
     {Opcode::Divide},
     kFloats,
     Numerics::Range,
     "e = $T[4,6] exponential(p)\n z = $T[] constant(0)\n t = $T[4] reduce(e, z), dimensions={1}, to_apply=sum\n"
     " b = $T[4,6] broadcast(t), dimensions={0}\n ROOT r = $T[4,6] divide(e, b)",
     "z = $T[] constant(0)\n t = $T[4] reduce(p, z), dimensions={1}, to_apply=sum\n"
     " b = $T[4,6] broadcast(t), dimensions={0}\n ROOT r = $T[4,6] divide(p, b)",
     DivideBySumOfExponentials},
    {"divide-quotient",
     {Opcode::Divide},
     kFloats,
     Numerics::Range,
     "b = $T[4,6] divide(p, q)\n ROOT r = $T[4,6] divide(b, q)",
     kQuotient,
     DivideQuotient},
    {"remainder-of-remainder",
     {Opcode::Remainder},
     kInts | kFloats,
     Numerics::Exact,
     "a = $T[4,6] remainder(p, q)\n ROOT r = $T[4,6] remainder(a, q)",
     "a = $T[4,6] remainder(p, q)\n ROOT r = $T[4,6] remainder(a, p)",
     [](Instruction* i) {
       Instruction* inner = i->operand(0);
       return inner->Is(Opcode::Remainder) && inner->operand(1) == i->operand(1) ? inner : nullptr;
     }},
    {"remainder-of-iota",
     {Opcode::Remainder},
     kInts,
     Numerics::Exact,
     "n = $T[4,6] iota(), iota_dimension=1\n z = $T[] constant(7)\n d = $T[4,6] broadcast(z), dimensions={}\n"
     " a = $T[4,6] add(n, d)\n ROOT r = $T[4,6] remainder(a, d)",
     "n = $T[4,6] iota(), iota_dimension=1\n z = $T[] constant(5)\n d = $T[4,6] broadcast(z), dimensions={}\n"
     " ROOT r = $T[4,6] remainder(n, d)",
     RemainderOfIota},
    {"remainder-by-power-of-two",
     {Opcode::Remainder},
     kInts,
     Numerics::Exact,
     "z = $T[] constant(8)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] remainder(p, b)",
     "z = $T[] constant(6)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] remainder(p, b)",
     RemainderByPowerOfTwo},
};

}  // namespace

absl::Span<const Rule> QuotientRules() { return kRules; }

}  // namespace kiln
