// Comparisons whose outcome is known, or that compare less.
#include "compiler/eval/scalar.h"
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using namespace pattern;

// Orders all bit patterns of floats, unlike the comparison that `<` means.
bool IsTotalOrder(const Instruction* i) { return i->attrs().compare_type == CompareType::TOTALORDER; }

PrimitiveType Compared(const Instruction* i) { return i->operand(0)->shape().type(); }

Instruction* WithItself(Instruction* i) {
  const PrimitiveType t = Compared(i);
  if (i->operand(0) != i->operand(1) || (!IsIntegral(t) && t != PrimitiveType::Pred)) return nullptr;
  const bool equal = IsDirection(i, Direction::EQ) || IsDirection(i, Direction::LE) || IsDirection(i, Direction::GE);
  return Filled(i, equal ? 1 : 0);
}

// x < 0 and x >= 0, of an unsigned x or one that is never negative. A NaN is not less, but not greater or equal either.
Instruction* WithZero(Instruction* i) {
  if (IsTotalOrder(i)) return nullptr;
  for (int64_t side = 0; side < 2; ++side) {
    Instruction* x = i->operand(side);
    const Direction direction = side == 0 ? *i->attrs().direction : Mirrored(*i->attrs().direction);
    const bool never_less = IsUnsigned(Compared(i)) || IsNeverNegative(x);
    if (!IsAll(i->operand(1 - side), 0) || !never_less) continue;
    if (direction == Direction::LT) return Filled(i, 0);
    if (direction != Direction::GE) continue;
    return IsIntegral(Compared(i)) ? Filled(i, 1) : CompareExpr(Direction::EQ, x, x).get();
  }
  return nullptr;
}

// A flag that is compared with true, or is not false.
Instruction* OfFlag(Instruction* i) {
  if (Compared(i) != PrimitiveType::Pred) return nullptr;
  if (IsDirection(i, Direction::NE)) return Beside(i, 0);
  return IsDirection(i, Direction::EQ) ? Beside(i, 1) : nullptr;
}

// A number that a flag picks, compared with a constant, is the flag, its opposite, or known.
Instruction* OfChoice(Instruction* i) {
  for (int64_t side = 0; side < 2; ++side) {
    Instruction* choice = i->operand(side);
    const Literal* constant = SplatOf(i->operand(1 - side));
    if (!constant || !i->shape().IsArray()) continue;
    Element picked[2];  // where the flag is false, and where it is true
    if (choice->Is(Opcode::Convert) && Compared(choice) == PrimitiveType::Pred) {
      for (int64_t flag = 0; flag < 2; ++flag)
        picked[flag] = ConvertElement(Literal::Int(PrimitiveType::Pred, flag).Get(0), PrimitiveType::Pred, Compared(i));
    } else if (choice->Is(Opcode::Select) && choice->operand(0)->shape().dims() == i->shape().dims() &&
               SplatOf(choice->operand(1)) && SplatOf(choice->operand(2))) {
      for (int64_t flag = 0; flag < 2; ++flag) picked[flag] = SplatOf(choice->operand(2 - flag))->Get(0);
    } else {
      continue;
    }
    bool answers[2];
    for (int64_t flag = 0; flag < 2; ++flag) {
      const Element operands[2] = {side == 0 ? picked[flag] : constant->Get(0),
                                   side == 0 ? constant->Get(0) : picked[flag]};
      const absl::StatusOr<Element> answer = EvaluateScalar(*i, operands);
      if (!answer.ok()) return nullptr;
      answers[flag] = answer->i != 0;
    }
    Instruction* flag = choice->operand(0);
    if (answers[0] == answers[1]) return Filled(i, answers[0] ? 1 : 0);
    return answers[1] ? flag : Unary(Opcode::Not, flag).get();
  }
  return nullptr;
}

// max(a, b) > a is b > a; b > min(a, b) is b > a. With a NaN all of them are false.
Instruction* WithExtremum(Instruction* i) {
  if (!IsDirection(i, Direction::GT) && !IsDirection(i, Direction::LT)) return nullptr;
  if (IsTotalOrder(i)) return nullptr;
  Instruction *more = i->operand(0), *less = i->operand(1);
  if (IsDirection(i, Direction::LT)) std::swap(more, less);
  const auto other = [](const Instruction* extremum, const Instruction* one) {
    return extremum->operand(0) == one   ? extremum->operand(1)
           : extremum->operand(1) == one ? extremum->operand(0)
                                         : nullptr;
  };
  if (more->Is(Opcode::Maximum))
    if (Instruction* b = other(more, less)) return CompareExpr(Direction::GT, b, less).get();
  if (less->Is(Opcode::Minimum))
    if (Instruction* b = other(less, more)) return CompareExpr(Direction::GT, more, b).get();
  return nullptr;
}

// x < K, also as K > x: the bound, and x in *x.
Instruction* UpperBound(Instruction* i, Instruction** x) {
  if (IsTotalOrder(i) || !i->Is(Opcode::Compare) || !IsIntegral(Compared(i))) return nullptr;
  const int64_t side = IsDirection(i, Direction::LT) ? 0 : IsDirection(i, Direction::GT) ? 1 : -1;
  if (side < 0 || IsKnown(i->operand(side))) return nullptr;
  *x = i->operand(side);
  return ScalarOf(i->operand(1 - side)) ? i->operand(1 - side) : nullptr;
}

// x < K and x < L: the smaller bound decides.
Instruction* AndOfBounds(Instruction* i) {
  Instruction *x, *y;
  Instruction *k = UpperBound(i->operand(0), &x), *l = k ? UpperBound(i->operand(1), &y) : nullptr;
  if (!l || x != y) return nullptr;
  return CompareExpr(Direction::LT, x, OfConstants(Opcode::Minimum, k, l)).get();
}

#define INTEGERS "a = s32[4,6] bitcast-convert(f)\n g = f32[4,6] convert(q)\n b = s32[4,6] bitcast-convert(g)\n "
#define ZERO "z = s32[] constant(0)\n y = s32[4,6] broadcast(z), dimensions={}\n "
#define FROM "f = f32[4,6] convert(p)\n "

const Rule kRules[] = {
    {"compare-with-itself",
     {Opcode::Compare},
     kPred,
     Numerics::Exact,
     FROM INTEGERS "ROOT r = pred[4,6] compare(a, a), direction=LE",
     FROM "ROOT r = pred[4,6] compare(f, f), direction=LE",
     WithItself},
    {"compare-with-zero",
     {Opcode::Compare},
     kPred,
     Numerics::Exact,
     FROM "e = f32[4,6] exponential(f)\n z = f32[] constant(0)\n y = f32[4,6] broadcast(z), dimensions={}\n"
          " ROOT r = pred[4,6] compare(y, e), direction=GT",
     FROM INTEGERS ZERO "ROOT r = pred[4,6] compare(a, y), direction=LT",
     WithZero},
    {"compare-flag",
     {Opcode::Compare},
     kPred,
     Numerics::Exact,
     "z = pred[] constant(false)\n y = pred[4,6] broadcast(z), dimensions={}\n"
     " ROOT r = pred[4,6] compare(k, y), direction=NE",
     "z = pred[] constant(false)\n y = pred[4,6] broadcast(z), dimensions={}\n"
     " ROOT r = pred[4,6] compare(k, y), direction=EQ",
     OfFlag},
    {"compare-choice",
     {Opcode::Compare},
     kPred,
     Numerics::Exact,
     ZERO "n = s32[] constant(1)\n o = s32[4,6] broadcast(n), dimensions={}\n d = s32[4,6] select(k, o, y)\n"
          " ROOT r = pred[4,6] compare(d, y), direction=NE",
     FROM INTEGERS ZERO "n = s32[] constant(1)\n o = s32[4,6] broadcast(n), dimensions={}\n"
                        " d = s32[4,6] select(k, o, y)\n ROOT r = pred[4,6] compare(d, a), direction=NE",
     OfChoice},
    {"compare-converted-flag",
     {Opcode::Compare},
     kPred,
     Numerics::Exact,
     ZERO "d = s32[4,6] convert(k)\n ROOT r = pred[4,6] compare(y, d), direction=EQ",
     FROM INTEGERS "d = s32[4,6] convert(k)\n ROOT r = pred[4,6] compare(a, d), direction=EQ",
     OfChoice},
    {"compare-with-extremum",
     {Opcode::Compare},
     kPred,
     Numerics::Exact,
     FROM INTEGERS "m = s32[4,6] maximum(a, b)\n ROOT r = pred[4,6] compare(m, a), direction=GT",
     FROM INTEGERS "m = s32[4,6] maximum(a, b)\n ROOT r = pred[4,6] compare(m, a), direction=GE",
     WithExtremum},
    {"and-of-bounds",
     {Opcode::And},
     kPred,
     Numerics::Exact,
     FROM INTEGERS ZERO "n = s32[] constant(9)\n o = s32[4,6] broadcast(n), dimensions={}\n"
                        " c = pred[4,6] compare(a, y), direction=LT\n d = pred[4,6] compare(o, a), direction=GT\n"
                        " ROOT r = pred[4,6] and(c, d)",
     FROM INTEGERS ZERO "c = pred[4,6] compare(a, y), direction=LT\n d = pred[4,6] compare(b, y), direction=LT\n"
                        " ROOT r = pred[4,6] and(c, d)",
     AndOfBounds},
};

}  // namespace

absl::Span<const Rule> ComparisonRules() { return kRules; }

}  // namespace kiln
