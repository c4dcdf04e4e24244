#include "codegen/elemental/search.h"

#include <algorithm>

namespace kiln {
namespace {

bool IsParameter(const Instruction* i, int64_t number) {
  return i->Is(Opcode::Parameter) && *i->attrs().parameter_number == number;
}

// Whether `i`, of a scalar function, is made of a parameter of an odd number.
bool AsksForPlaces(const Instruction* i) {
  if (i->Is(Opcode::Parameter)) return *i->attrs().parameter_number % 2 != 0;
  return std::any_of(i->operands().begin(), i->operands().end(), AsksForPlaces);
}

// How two elements stand to each other. The places of the first are below those of the second.
struct Pair {
  enum Order { kLess, kEqual, kGreater } order;
  bool first_is_nan = false, second_is_nan = false;
};

bool Holds(Direction d, Pair::Order order) {
  switch (d) {
    case Direction::EQ:
      return order == Pair::kEqual;
    case Direction::NE:
      return order != Pair::kEqual;
    case Direction::LT:
      return order == Pair::kLess;
    case Direction::LE:
      return order != Pair::kGreater;
    case Direction::GT:
      return order == Pair::kGreater;
    case Direction::GE:
      return order != Pair::kLess;
  }
  return false;
}

// A comparison of two parameters of the function, for such a pair; nothing is known of others.
std::optional<bool> Compared(const Instruction* i, const Pair& pair) {
  const Instruction *x = i->operand(0), *y = i->operand(1);
  if (!x->Is(Opcode::Parameter) || !y->Is(Opcode::Parameter) || i->attrs().compare_type == CompareType::TOTALORDER)
    return std::nullopt;
  const int64_t a = *x->attrs().parameter_number, b = *y->attrs().parameter_number;
  if (a % 2 != b % 2) return std::nullopt;
  const bool places = a % 2 != 0;
  const auto is_nan = [&](int64_t number) { return !places && (number == 0 ? pair.first_is_nan : pair.second_is_nan); };
  const Direction d = *i->attrs().direction;
  if (is_nan(a) || is_nan(b)) return d == Direction::NE;
  const Pair::Order forward = places ? Pair::kLess : pair.order;
  const Pair::Order backward = forward == Pair::kLess      ? Pair::kGreater
                               : forward == Pair::kGreater ? Pair::kLess
                                                           : Pair::kEqual;
  return Holds(d, a == b ? Pair::kEqual : a < b ? forward : backward);
}

// What predicate `i` of the function is for such a pair.
std::optional<bool> Known(const Instruction* i, const Pair& pair) {
  if (i->Is(Opcode::Compare)) return Compared(i, pair);
  if (i->Is(Opcode::Constant)) return i->literal().Get(0).i != 0;
  std::vector<bool> of;
  for (const Instruction* o : i->operands()) {
    if (o->shape().type() != PrimitiveType::Pred) return std::nullopt;
    const std::optional<bool> known = Known(o, pair);
    if (!known) return std::nullopt;
    of.push_back(*known);
  }
  if (i->Is(Opcode::Not)) return !of[0];
  if (i->Is(Opcode::And)) return of[0] && of[1];
  if (i->Is(Opcode::Or)) return of[0] || of[1];
  if (i->Is(Opcode::Xor)) return of[0] != of[1];
  if (i->Is(Opcode::Select)) return of[0] ? of[1] : of[2];
  return std::nullopt;
}

// Whether result `k` of the function is the second element's.
std::optional<bool> TakesSecond(const Instruction* reduce, int64_t k, const Pair& pair) {
  const Instruction* select = (*reduce->attrs().to_apply)->root()->operand(k);
  const std::optional<bool> known = Known(select->operand(0), pair);
  if (!known) return std::nullopt;
  return *select->operand(*known ? 1 : 2)->attrs().parameter_number >= 2;
}

}  // namespace

bool ChoosesByPlace(const Computation& f) {
  const Instruction* root = f.root();
  if (!root->Is(Opcode::Tuple) || root->operand_count() != 2 || !IsIntegral(root->operand(1)->shape().type()))
    return false;
  for (int64_t k = 0; k < 2; ++k) {
    const Instruction* s = root->operand(k);
    if (!s->Is(Opcode::Select)) return false;
    for (int64_t o = 1; o < 3; ++o)
      if (!s->operand(o)->Is(Opcode::Parameter) || *s->operand(o)->attrs().parameter_number % 2 != k) return false;
  }
  return true;
}

void OrderByPlace(Ir& ir, PrimitiveType place, std::vector<Val>* a, std::vector<Val>* b) {
  llvm::Value *own = a->at(1).re, *other = b->at(1).re;
  llvm::Value* swap = IsSigned(place) ? ir.b.CreateICmpSLT(other, own) : ir.b.CreateICmpULT(other, own);
  const auto pick = [&](const Val& x, const Val& y) {
    return Val{ir.Select(swap, x.re, y.re), x.im ? ir.Select(swap, x.im, y.im) : nullptr};
  };
  for (size_t k = 0; k < 2; ++k) {
    const Val x = a->at(k), y = b->at(k);
    a->at(k) = pick(y, x);
    b->at(k) = pick(x, y);
  }
}

std::optional<Extremum> ExtremumOf(const Instruction* reduce) {
  if (TestsOfOrder(reduce).empty()) return std::nullopt;
  const bool floats = IsFloat(reduce->operand(0)->shape().type());
  const auto takes = [&](int64_t k, const Pair& pair, bool second) { return TakesSecond(reduce, k, pair) == second; };
  const std::optional<bool> least = TakesSecond(reduce, 0, Pair{Pair::kGreater});
  const std::optional<bool> later = TakesSecond(reduce, 0, Pair{Pair::kEqual});
  if (!least || !later) return std::nullopt;
  for (int64_t k = 0; k < 2; ++k) {
    if (!takes(k, Pair{Pair::kGreater}, *least) || !takes(k, Pair{Pair::kLess}, !*least)) return std::nullopt;
    if (floats && !(takes(k, Pair{Pair::kEqual, true, false}, false) &&
                    takes(k, Pair{Pair::kEqual, true, true}, false) && takes(k, Pair{Pair::kEqual, false, true}, true)))
      return std::nullopt;
  }
  if (!takes(1, Pair{Pair::kEqual}, false)) return std::nullopt;
  return Extremum{!*least, *later};
}

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
  return reduced && !others && s.dim(along) != 1 && ChoosesByPlace(**reduce->attrs().to_apply);
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

}  // namespace kiln
