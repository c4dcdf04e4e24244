#include "compiler/passes/simplify/rules/reducer.h"

#include <cmath>
#include <limits>

#include "compiler/passes/simplify/rules/pattern.h"

namespace kiln {
namespace {

using pattern::IsAll;

// The least (or greatest) value of `t` as a literal holds it.
bool IsExtreme(PrimitiveType t, const Instruction* i, bool greatest) {
  if (IsFloat(t)) return IsAll(i, greatest ? INFINITY : -INFINITY);
  const Literal* l = pattern::SplatOf(i);
  if (!l || !IsIntegral(t)) return false;
  const int64_t bits = BitWidth(t);
  const int64_t value = IsUnsigned(t) ? (greatest ? WrapInt(t, -1) : 0)
                        : greatest    ? std::numeric_limits<int64_t>::max() >> (64 - bits)
                                      : std::numeric_limits<int64_t>::min() >> (64 - bits);
  return l->Get(0).i == value;
}

}  // namespace

std::optional<Opcode> ReducerOf(const Instruction* i) {
  const Instruction* r = (*i->attrs().to_apply)->root();
  const bool plain = r->operand_count() == 2 && r->operand(0)->Is(Opcode::Parameter) &&
                     r->operand(1)->Is(Opcode::Parameter) && r->operand(0) != r->operand(1);
  return plain ? std::optional(r->opcode()) : std::nullopt;
}

bool OrderMatters(const Instruction* i) {
  const Instruction* r = (*i->attrs().to_apply)->root();
  if (r->operand_count() != 2 || !r->operand(0)->Is(Opcode::Parameter) || !r->operand(1)->Is(Opcode::Parameter))
    return true;
  switch (r->opcode()) {
    case Opcode::Minimum:
    case Opcode::Maximum:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
      return false;
    case Opcode::Add:
    case Opcode::Multiply:
      return IsFloat(r->shape().type()) || IsComplex(r->shape().type());
    default:
      return true;
  }
}

bool IsIdentityOf(Opcode op, PrimitiveType t, const Instruction* initial) {
  switch (op) {
    case Opcode::Maximum:
      return IsExtreme(t, initial, false);
    case Opcode::Minimum:
      return IsExtreme(t, initial, true);
    case Opcode::Multiply:
      return IsAll(initial, 1);
    case Opcode::Add:
      return IsAll(initial, 0) || (IsFloat(t) && IsAll(initial, -0.0));
    case Opcode::And: {
      const Literal* l = pattern::SplatOf(initial);
      return l && (t == PrimitiveType::Pred ? l->Get(0).i == 1 : IsIntegral(t) && l->Get(0).i == WrapInt(t, -1));
    }
    case Opcode::Or:
      return IsAll(initial, 0);
    default:
      return false;  // any other operation: no identity is known
  }
}

bool InitialMayRepeat(Opcode op, PrimitiveType t, const Instruction* initial) {
  const bool idempotent = op == Opcode::Maximum || op == Opcode::Minimum || op == Opcode::And || op == Opcode::Or;
  return idempotent || IsIdentityOf(op, t, initial);
}

bool SameScalar(const Instruction* a, const Instruction* b) {
  if (a == b) return true;
  const Literal *x = pattern::SplatOf(a), *y = pattern::SplatOf(b);
  return x && y && a->shape().IsScalar() && b->shape().IsScalar() && x->Reshaped(a->shape()) == y->Reshaped(b->shape());
}

bool IsStatic(const Instruction* i) {
  for (const Instruction* o : i->operands())
    if (o->shape().HasDynamic()) return false;
  return !i->shape().HasDynamic();
}

std::vector<std::pair<int64_t, int64_t>> DimsKeptByReshape(const Ints& from, const Ints& to) {
  std::vector<std::pair<int64_t, int64_t>> kept;
  int64_t before_from = 1, before_to = 1;  // elements in front of dimensions i and j
  for (size_t i = 0, j = 0; i < from.size() && j < to.size();) {
    if (before_from == before_to && from[i] == to[j]) {
      kept.push_back({static_cast<int64_t>(i), static_cast<int64_t>(j)});
      before_from *= from[i++];
      before_to *= to[j++];
    } else if (before_from < before_to || (before_from == before_to && from[i] < to[j])) {
      before_from *= from[i++];
    } else {
      before_to *= to[j++];
    }
  }
  return kept;
}

}  // namespace kiln
