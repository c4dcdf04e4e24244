#include "compiler/hlo/sort_key.h"

#include <optional>

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

// The key whose order `test` asks for.
std::optional<SortKey> KeyOfTest(const Instruction* test) {
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

// Whether `test` asks if both sides have the same of `key`.
bool AsksForEquals(const Instruction* test, const SortKey& key) {
  if (!test->Is(Opcode::Compare) || *test->attrs().direction != Direction::EQ) return false;
  const Instruction *a = test->operand(0), *b = test->operand(1);
  const Instruction *of_a = ParameterOf(a), *of_b = ParameterOf(b);
  if (!of_a || !of_b || !SameFunction(a, key.value) || !SameFunction(a, b)) return false;
  const int64_t p = *of_a->attrs().parameter_number, q = *of_b->attrs().parameter_number;
  const bool total = test->attrs().compare_type == CompareType::TOTALORDER;
  return p / 2 == key.operand && (p ^ q) == 1 && total == key.total;
}

bool HasPlaceForAll(const SortKey& key) { return key.total || !IsFloat(key.value->shape().type()); }

}  // namespace

std::vector<SortKey> KeysOfSort(const Instruction* sort) {
  std::vector<SortKey> keys;
  const Instruction* test = (*sort->attrs().to_apply)->root();
  while (test->Is(Opcode::Or)) {  // before, or equal and what follows
    const bool first = test->operand(1)->Is(Opcode::And);
    const Instruction *before = test->operand(first ? 0 : 1), *among = test->operand(first ? 1 : 0);
    const auto key = KeyOfTest(before);
    if (!key || !HasPlaceForAll(*key) || !among->Is(Opcode::And)) return {};
    const bool equals_first = AsksForEquals(among->operand(0), *key);
    if (!equals_first && !AsksForEquals(among->operand(1), *key)) return {};
    keys.push_back(*key);
    test = among->operand(equals_first ? 1 : 0);
  }
  const auto last = KeyOfTest(test);
  if (!last || (!keys.empty() && !HasPlaceForAll(*last))) return {};
  keys.push_back(*last);
  return keys;
}

}  // namespace kiln
