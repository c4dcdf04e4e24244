#include "compiler/hlo/sort_key.h"

namespace kiln {
namespace {

// Comparators that are longer are not looked through.
constexpr int kDeepest = 16;

// The one parameter that `i` is made of; null if there are several or none.
const Instruction* ParameterOf(const Instruction* i, int depth = 0) {
  if (i->Is(Opcode::Parameter)) return i;
  if (depth > kDeepest) return nullptr;
  const Instruction* found = nullptr;
  for (const Instruction* o : i->operands()) {
    if (o->Is(Opcode::Constant)) continue;
    const Instruction* p = ParameterOf(o, depth + 1);
    if (!p || (found && found != p)) return nullptr;
    found = p;
  }
  return found;
}

// Whether `a` makes of its parameter what `b` makes of its own.
bool SameFunction(const Instruction* a, const Instruction* b, int depth = 0) {
  if (a->opcode() != b->opcode() || a->shape() != b->shape() || depth > kDeepest) return false;
  if (a->Is(Opcode::Parameter)) return true;
  if (a->Is(Opcode::Constant)) return a->literal() == b->literal();
  if (!a->IsElementwise() || a->operand_count() != b->operand_count() || !(a->attrs() == b->attrs())) return false;
  for (int64_t k = 0; k < a->operand_count(); ++k)
    if (!SameFunction(a->operand(k), b->operand(k), depth + 1)) return false;
  return true;
}

}  // namespace

std::optional<SortKey> KeyOfSort(const Instruction* sort) {
  const Instruction* test = (*sort->attrs().to_apply)->root();
  if (!test->Is(Opcode::Compare)) return std::nullopt;
  const Direction direction = *test->attrs().direction;
  if (direction != Direction::LT && direction != Direction::GT) return std::nullopt;
  const Instruction *a = test->operand(0), *b = test->operand(1);
  const Instruction *of_a = ParameterOf(a), *of_b = ParameterOf(b);
  if (!of_a || !of_b || !SameFunction(a, b) || IsComplex(a->shape().type())) return std::nullopt;
  const int64_t p = *of_a->attrs().parameter_number, q = *of_b->attrs().parameter_number;
  if ((p ^ q) != 1) return std::nullopt;
  const bool swapped = p % 2 == 1;
  return SortKey{p / 2, a, of_a, (direction == Direction::GT) != swapped,
                 test->attrs().compare_type == CompareType::TOTALORDER};
}

}  // namespace kiln
