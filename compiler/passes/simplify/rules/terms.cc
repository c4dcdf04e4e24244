#include "compiler/passes/simplify/rules/terms.h"

#include <cmath>

#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

// How far a question walks up the operands.
constexpr int kMostSteps = 8;

bool IsNeverNegativeWithin(const Instruction* i, int steps) {
  if (steps == 0 || !i->shape().IsArray() || IsComplex(i->shape().type())) return false;
  const auto operand = [&](int64_t k) { return IsNeverNegativeWithin(i->operand(k), steps - 1); };
  const bool real = IsFloat(i->shape().type());
  switch (i->opcode()) {
    case Opcode::Abs:
      return real || operand(0);  // of the least integer it is that integer
    case Opcode::Exponential:
      return true;
    case Opcode::Constant: {
      const Literal& l = i->literal();
      if (l.size() != 1) return false;
      const Element e = l.Get(0);
      return real ? !std::signbit(e.re) && !std::isnan(e.re) : !IsSigned(l.type()) || e.i >= 0;
    }
    case Opcode::Iota: {
      const int64_t bits = BitWidth(i->shape().type());
      return real || !IsSigned(i->shape().type()) || bits == 64 ||
             i->shape().dim(*i->attrs().iota_dimension) <= int64_t{1} << (bits - 1);
    }
    case Opcode::Multiply:
      return real && i->operand(0) == i->operand(1);
    case Opcode::Add:
      return real && operand(0) && operand(1);
    case Opcode::Reduce:
      return real && i->operand_count() == 2 && ReducerOf(i) == Opcode::Add && operand(0) && operand(1);
    case Opcode::Power:
      return real && operand(0);
    case Opcode::Broadcast:
    case Opcode::Reshape:
    case Opcode::Sqrt:
    case Opcode::Rsqrt:
      return operand(0);
    case Opcode::Maximum:
      return operand(0) || operand(1);
    case Opcode::Minimum:
      return operand(0) && operand(1);
    case Opcode::Select:
      return operand(1) && operand(2);
    default:
      return false;
  }
}

}  // namespace

bool IsKnown(const Instruction* i) {
  while (i->Is(Opcode::Broadcast)) i = i->operand(0);
  return i->Is(Opcode::Constant);
}

Instruction* ScalarOf(Instruction* i) {
  while (i->Is(Opcode::Broadcast)) i = i->operand(0);
  return i->Is(Opcode::Constant) && i->shape().IsScalar() ? i : nullptr;
}

Instruction* OfConstants(Opcode opcode, Instruction* a, Instruction* b) {
  Instruction *s = ScalarOf(a), *t = ScalarOf(b);
  if (s && t) return Spread(Binary(opcode, s, t).get(), a->shape().dims());
  if (a->Is(Opcode::Constant) && b->Is(Opcode::Constant)) return Binary(opcode, a, b).get();
  const auto of_constant = [](const Instruction* i) {
    return i->Is(Opcode::Broadcast) && i->operand(0)->Is(Opcode::Constant);
  };
  if (!of_constant(a) || !of_constant(b) || !a->operand(0)->shape().Compatible(b->operand(0)->shape()) ||
      a->attrs().dimensions != b->attrs().dimensions)
    return nullptr;
  return Over(a, {Binary(opcode, a->operand(0), b->operand(0)).get()});
}

bool IsNeverNegative(const Instruction* i) { return IsNeverNegativeWithin(i, kMostSteps); }

}  // namespace kiln
