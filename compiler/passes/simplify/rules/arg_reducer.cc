#include "compiler/passes/simplify/rules/arg_reducer.h"

#include <cmath>

#include "compiler/passes/simplify/rules/pattern.h"

namespace kiln {
namespace {

bool IsParameter(const Instruction* i, int64_t number) {
  return i->Is(Opcode::Parameter) && *i->attrs().parameter_number == number;
}

bool IsComparison(const Instruction* i, Direction direction, int64_t a, int64_t b) {
  return i->Is(Opcode::Compare) && *i->attrs().direction == direction && IsParameter(i->operand(0), a) &&
         IsParameter(i->operand(1), b);
}

template <typename A, typename B>
bool IsEither(const Instruction* i, Opcode op, const A& a, const B& b) {
  return i->Is(op) && ((a(i->operand(0)) && b(i->operand(1))) || (a(i->operand(1)) && b(i->operand(0))));
}

bool ChoosesFirst(const Instruction* i, Direction direction) {
  return IsEither(
      i, Opcode::Or, [&](const Instruction* x) { return IsComparison(x, direction, 0, 2); },
      [](const Instruction* x) { return IsComparison(x, Direction::NE, 0, 0); });
}

bool IsTieBreak(const Instruction* i) {
  return IsEither(
      i, Opcode::And, [](const Instruction* x) { return IsComparison(x, Direction::EQ, 0, 2); },
      [](const Instruction* x) { return IsComparison(x, Direction::LT, 1, 3); });
}

bool Selects(const Instruction* i, int64_t a, int64_t b) {
  return i->Is(Opcode::Select) && IsParameter(i->operand(1), a) && IsParameter(i->operand(2), b);
}

bool IsArgBody(const Instruction* root, Direction direction) {
  if (!root->Is(Opcode::Tuple) || root->operand_count() != 2) return false;
  const Instruction *value = root->operand(0), *place = root->operand(1);
  return Selects(value, 0, 2) && ChoosesFirst(value->operand(0), direction) && Selects(place, 1, 3) &&
         IsEither(
             place->operand(0), Opcode::Or, [&](const Instruction* x) { return ChoosesFirst(x, direction); },
             IsTieBreak);
}

}  // namespace

std::optional<Opcode> ArgReducerOf(const Instruction* i) {
  if (!i->Is(Opcode::Reduce) || i->operand_count() != 4 || !i->operand(1)->Is(Opcode::Iota) ||
      !IsFloat(i->operand(0)->shape().type()) || !pattern::IsAll(i->operand(3), 0))
    return std::nullopt;
  const Instruction* root = (*i->attrs().to_apply)->root();
  if (pattern::IsAll(i->operand(2), -INFINITY) && IsArgBody(root, Direction::GT)) return Opcode::Maximum;
  if (pattern::IsAll(i->operand(2), INFINITY) && IsArgBody(root, Direction::LT)) return Opcode::Minimum;
  return std::nullopt;
}

}  // namespace kiln
