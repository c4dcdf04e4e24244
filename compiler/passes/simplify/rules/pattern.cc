#include "compiler/passes/simplify/rules/pattern.h"

namespace kiln::pattern {

const Literal* SplatOf(const Instruction* i) {
  constexpr int64_t kMostCompared = 4096;  // elements of a constant that are compared with each other
  while (i->Is(Opcode::Broadcast) || i->Is(Opcode::Reshape) || i->Is(Opcode::Bitcast) || i->Is(Opcode::Copy))
    i = i->operand(0);
  if (!i->Is(Opcode::Constant) || !i->shape().IsArray() || i->literal().size() == 0) return nullptr;
  const int64_t n = i->shape().ElementCount();
  return n == 1 || (n <= kMostCompared && i->literal().IsSplat()) ? &i->literal() : nullptr;
}

bool IsAll(const Instruction* i, double value) {
  const Literal* l = SplatOf(i);
  if (!l) return false;
  const Element e = l->Get(0);
  if (IsFloat(l->type()) || IsComplex(l->type()))
    return e.re == value && e.im == 0 && std::signbit(e.re) == std::signbit(value);
  return e.i == static_cast<int64_t>(value) && value == std::floor(value);
}

Instruction* Beside(Instruction* i, double value) {
  Instruction* x;
  return MatchEither(i, Any(&x), All(value)) ? x : nullptr;
}

}  // namespace kiln::pattern
