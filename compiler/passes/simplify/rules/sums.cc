// Sums and differences: what cancels, constants that meet, common factors, and updates of zeros.
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using namespace pattern;

// x - K is x + -K, which meets other sums; where K is repeated, so is -K.
Instruction* SubtractConstant(Instruction* i) {
  Instruction *x = i->operand(0), *k = i->operand(1);
  if (!IsKnown(k) || IsKnown(x)) return nullptr;
  Instruction* scalar = ScalarOf(k);
  if (!scalar && k->Is(Opcode::Constant)) return (Expr(x) + -Expr(k)).get();
  if (!scalar) return (Expr(x) + Over(k, {(-Expr(k->operand(0))).get()})).get();
  return (Expr(x) + Spread((-Expr(scalar)).get(), i->shape().dims())).get();
}

// (a + K1) + K2 and (K1 - a) + K2.
Instruction* AddConstants(Instruction* i) {
  Instruction *inner = i->operand(0), *k = i->operand(1);
  if (!IsKnown(k) || inner->operand_count() != 2) return nullptr;
  Instruction *a = inner->operand(0), *b = inner->operand(1);
  if (inner->Is(Opcode::Add) && IsKnown(b) && !IsKnown(a)) {
    Instruction* sum = OfConstants(Opcode::Add, b, k);
    return sum ? (Expr(a) + sum).get() : nullptr;
  }
  if (inner->Is(Opcode::Subtract) && IsKnown(a) && !IsKnown(b)) {
    Instruction* sum = OfConstants(Opcode::Add, a, k);
    return sum ? (Expr(sum) - b).get() : nullptr;
  }
  return nullptr;
}

// a + (b - a) is b.
Instruction* AddDifference(Instruction* i) {
  Instruction *a, *b;
  return MatchEither(i, Any(&a), Op(Opcode::Subtract, Any(&b), Same(&a))) ? b : nullptr;
}

Instruction* Cancel(Instruction* i) {
  Instruction *a = i->operand(0), *b = i->operand(1), *c;
  if (a == b) return Filled(i, 0);
  // a - (a - c) is c, a - (a + c) is -c, (b + c) - b is c.
  if (Match(b, Op(Opcode::Subtract, Same(&a), Any(&c)))) return c;
  if (Match(b, Op(Opcode::Add, Same(&a), Any(&c))) || Match(b, Op(Opcode::Add, Any(&c), Same(&a))))
    return (-Expr(c)).get();
  if (Match(a, Op(Opcode::Add, Same(&b), Any(&c))) || Match(a, Op(Opcode::Add, Any(&c), Same(&b)))) return c;
  return nullptr;
}

// a*c + b*c with c on any side; null if there is no such c. `factor_admitted` says which c may be taken out.
Instruction* TakeOutFactor(Instruction* i, bool (*factor_admitted)(const Instruction*)) {
  Instruction *p = i->operand(0), *q = i->operand(1);
  if (p == q || !p->Is(Opcode::Multiply) || !q->Is(Opcode::Multiply) || !HasOneUser(p) || !HasOneUser(q))
    return nullptr;
  for (int64_t k = 0; k < 2; ++k)
    for (int64_t l = 0; l < 2; ++l)
      if (p->operand(k) == q->operand(l) && factor_admitted(p->operand(k)))
        return Over(p, {Binary(Opcode::Add, p->operand(1 - k), q->operand(1 - l)).get(), p->operand(k)});
  return nullptr;
}

// Both products are exact then, or both leave the range.
bool IsPowerOfTwo(const Instruction* c) {
  const Literal* l = SplatOf(c);
  int exponent;
  return l && std::fabs(std::frexp(l->Get(0).re, &exponent)) == 0.5;
}

// x + update(0, u) adds where u is.
Instruction* AddUpdateOfZeros(Instruction* i) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *update = i->operand(k), *x = i->operand(1 - k);
    if (!update->Is(Opcode::DynamicUpdateSlice) || update->operand(0)->shape().dims() != i->shape().dims() ||
        !ScalarOf(update->operand(0)) || !IsAll(update->operand(0), 0) || HasOwnLayout(i))
      continue;
    std::vector<Expr> starts;
    for (int64_t o = 2; o < update->operand_count(); ++o) starts.emplace_back(update->operand(o));
    Instruction* u = update->operand(1);
    return UpdateOf(x, DynamicSliceOf(x, starts, u->shape().dims()) + u, starts).get();
  }
  return nullptr;
}

constexpr char kConstants[] =
    "c = $T[] constant(3)\n d = $T[4,6] broadcast(c), dimensions={}\n y = $T[] constant(5)\n"
    " e = $T[4,6] broadcast(y), dimensions={}\n a = $T[4,6] add(p, d)\n ROOT r = $T[4,6] add(a, e)";
constexpr char kConstantAndVariable[] =
    "c = $T[] constant(3)\n d = $T[4,6] broadcast(c), dimensions={}\n a = $T[4,6] add(p, d)\n ROOT r = $T[4,6] add(a, "
    "q)";
constexpr char kUpdate[] =
    "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n"
    " n = s32[] constant(1)\n d = $T[4,6] dynamic-update-slice(b, u, n, n)\n ROOT r = $T[4,6] add(p, d)";
constexpr char kUpdateOfOthers[] =
    "u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n n = s32[] constant(1)\n"
    " d = $T[4,6] dynamic-update-slice(q, u, n, n)\n ROOT r = $T[4,6] add(p, d)";

const Rule kRules[] = {
    {"subtract-constant",
     {Opcode::Subtract},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "z = $T[] constant(3)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] subtract(p, b)",
     "z = $T[] constant(3)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] subtract(b, p)",
     SubtractConstant},
    {"add-constants", {Opcode::Add}, kInts, Numerics::Exact, kConstants, kConstantAndVariable, AddConstants},
    {"add-constants-rounded",
     {Opcode::Add},
     kFloats | kComplex,
     Numerics::Range,
     kConstants,
     kConstantAndVariable,
     AddConstants},
    {"add-difference",
     {Opcode::Add},
     kInts,
     Numerics::Exact,
     "d = $T[4,6] subtract(q, p)\n ROOT r = $T[4,6] add(p, d)",
     "d = $T[4,6] subtract(p, q)\n ROOT r = $T[4,6] add(p, d)",
     AddDifference},
    {"add-difference-finite",
     {Opcode::Add},
     kFloats,
     Numerics::Finite,
     "d = $T[4,6] subtract(q, p)\n ROOT r = $T[4,6] add(d, p)",
     "d = $T[4,6] subtract(p, q)\n ROOT r = $T[4,6] add(p, d)",
     AddDifference},
    {"subtract-same",
     {Opcode::Subtract},
     kInts,
     Numerics::Exact,
     "d = $T[4,6] add(q, p)\n ROOT r = $T[4,6] subtract(p, d)",
     "d = $T[4,6] subtract(q, p)\n ROOT r = $T[4,6] subtract(p, d)",
     Cancel},
    {"subtract-same-finite",
     {Opcode::Subtract},
     kFloats,
     Numerics::Finite,
     "ROOT r = $T[4,6] subtract(p, p)",
     "d = $T[4,6] subtract(q, p)\n ROOT r = $T[4,6] subtract(p, d)",
     Cancel},
    {"common-factor",
     {Opcode::Add},
     kInts,
     Numerics::Exact,
     "a = $T[4,6] multiply(p, q)\n b = $T[4,6] multiply(p, p)\n ROOT r = $T[4,6] add(a, b)",
     "a = $T[4,6] multiply(p, p)\n b = $T[4,6] multiply(q, q)\n ROOT r = $T[4,6] add(a, b)",
     [](Instruction* i) { return TakeOutFactor(i, [](const Instruction*) { return true; }); }},
    {"common-power-of-two",
     {Opcode::Add},
     kFloats,
     Numerics::Range,
     "z = $T[] constant(0.5)\n c = $T[4,6] broadcast(z), dimensions={}\n a = $T[4,6] multiply(p, c)\n"
     " b = $T[4,6] multiply(c, q)\n ROOT r = $T[4,6] add(a, b)",
     "z = $T[] constant(1.5)\n c = $T[4,6] broadcast(z), dimensions={}\n a = $T[4,6] multiply(p, c)\n"
     " b = $T[4,6] multiply(q, c)\n ROOT r = $T[4,6] add(a, b)",
     [](Instruction* i) { return TakeOutFactor(i, IsPowerOfTwo); }},
    {"add-update-of-zeros", {Opcode::Add}, kInts, Numerics::Exact, kUpdate, kUpdateOfOthers, AddUpdateOfZeros},
    {"add-update-of-float-zeros",
     {Opcode::Add},
     kFloats | kComplex,
     Numerics::ZeroSign,
     kUpdate,
     kUpdateOfOthers,
     AddUpdateOfZeros},
    {"add-positive-zero",
     {Opcode::Add},
     kFloats | kComplex,
     Numerics::ZeroSign,
     "z = $T[] constant(0)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] add(p, b)",
     "ROOT r = $T[4,6] add(p, q)",
     [](Instruction* i) { return Beside(i, 0); }},
};

}  // namespace

absl::Span<const Rule> SumRules() { return kRules; }

}  // namespace kiln
