#include "codegen/cpu/search.h"

#include <algorithm>

namespace kiln::cpu {
namespace {

bool IsParameter(const Instruction* i, int64_t number) {
  return i->Is(Opcode::Parameter) && *i->attrs().parameter_number == number;
}

// Whether `i`, of a scalar function, is made of a parameter of an odd number.
bool AsksForPlaces(const Instruction* i) {
  if (i->Is(Opcode::Parameter)) return *i->attrs().parameter_number % 2 != 0;
  return std::any_of(i->operands().begin(), i->operands().end(), AsksForPlaces);
}

bool Chooses(const Instruction* root) {
  if (!root->Is(Opcode::Tuple) || root->operand_count() != 2) return false;
  for (int64_t k = 0; k < 2; ++k) {
    const Instruction* s = root->operand(k);
    if (!s->Is(Opcode::Select)) return false;
    for (int64_t o = 1; o < 3; ++o)
      if (!s->operand(o)->Is(Opcode::Parameter) || *s->operand(o)->attrs().parameter_number % 2 != k) return false;
  }
  return true;
}

}  // namespace

bool IsSearch(const Instruction* reduce) {
  if (reduce->operand_count() != 4) return false;
  const Shape& s = reduce->operand(0)->shape();
  const Instruction* places = reduce->operand(1);
  if (!places->Is(Opcode::Iota) || !IsIntegral(places->shape().type())) return false;
  const int64_t along = places->attrs().iota_dimension.value_or(0);
  // Extents of 1 do not count.
  bool reduced = false, others = false;
  for (int64_t d : *reduce->attrs().dimensions) {
    reduced = reduced || d == along;
    others = others || (d != along && s.dim(d) != 1);
  }
  return reduced && !others && s.dim(along) != 1 && Chooses((*reduce->attrs().to_apply)->root());
}

std::vector<const Instruction*> TestsOfOrder(const Instruction* reduce) {
  std::vector<const Instruction*> tests;
  if (!IsSearch(reduce) || !reduce->operand(3)->Is(Opcode::Constant) || reduce->operand(3)->literal().Get(0).i != 0)
    return tests;
  const Computation& f = **reduce->attrs().to_apply;
  if (AsksForPlaces(f.root()->operand(0)->operand(0))) return tests;
  for (const auto& i : f.instructions())
    if (i->Is(Opcode::Compare) && *i->attrs().direction == Direction::LT && IsParameter(i->operand(0), 1) &&
        IsParameter(i->operand(1), 3))
      tests.push_back(i.get());
  return tests;
}

}  // namespace kiln::cpu
