// Patterns of expressions, for rules: Match(i, Multiply(Any(&x), Splat(2))).
//
// A pattern is a value with a function Matches(instruction). Any(&x) takes what it meets into x; what a pattern that
// failed has taken by then means nothing.
#pragma once

#include <cmath>
#include <tuple>
#include <utility>

#include "compiler/hlo/instruction.h"

namespace kiln::pattern {

// The scalar that every element of `i` is: of a constant, or of a broadcast of one; null if that is not known.
const Literal* SplatOf(const Instruction* i);
// Whether every element is `value`, its sign included.
bool IsAll(const Instruction* i, double value);

struct Any {
  Instruction** into = nullptr;
  explicit Any(Instruction** into) : into(into) {}
  bool Matches(Instruction* i) const {
    *into = i;
    return true;
  }
};

// The instruction itself, met before.
struct Same {
  Instruction* const* as;
  explicit Same(Instruction* const* as) : as(as) {}
  bool Matches(Instruction* i) const { return i == *as; }
};

struct All {
  double value;
  explicit All(double value) : value(value) {}
  bool Matches(Instruction* i) const { return IsAll(i, value); }
};

// An operation with operands that match; the operation itself into *into, if given.
template <typename... Operands>
struct Op {
  Opcode opcode;
  Instruction** into;
  std::tuple<Operands...> operands;
  explicit Op(Opcode opcode, Operands... o) : opcode(opcode), into(nullptr), operands(std::move(o)...) {}
  Op(Opcode opcode, Instruction** into, Operands... o) : opcode(opcode), into(into), operands(std::move(o)...) {}
  bool Matches(Instruction* i) const {
    if (into) *into = i;
    return i->Is(opcode) && i->operand_count() == sizeof...(Operands) &&
           MatchesAll(i, std::make_index_sequence<sizeof...(Operands)>());
  }

 private:
  template <size_t... k>
  bool MatchesAll(Instruction* i, std::index_sequence<k...>) const {
    return (std::get<k>(operands).Matches(i->operand(k)) && ...);
  }
};

// The two operands of an instruction, in either order.
template <typename A, typename B>
bool MatchEither(Instruction* i, const A& a, const B& b) {
  return (a.Matches(i->operand(0)) && b.Matches(i->operand(1))) ||
         (a.Matches(i->operand(1)) && b.Matches(i->operand(0)));
}

// The operand of `i` beside one that is `value` everywhere; null if neither is.
Instruction* Beside(Instruction* i, double value);

template <typename Pattern>
bool Match(Instruction* i, const Pattern& p) {
  return p.Matches(i);
}

}  // namespace kiln::pattern
