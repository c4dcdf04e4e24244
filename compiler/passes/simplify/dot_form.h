// The dimensions of a dot by what they do, and dots built in the manner of others.
//
// Why: every rewrite of a dot moves dimensions between three roles on two sides; written out over the four attribute
// lists that is a page each.
#pragma once

#include "compiler/hlo/graph_builder.h"

namespace kiln {

// One operand's dimensions. Those of `batch` and `contracting` pair with the other side's in order; `free` ascends.
struct DotSide {
  Ints batch, contracting, free;
};

inline bool Holds(const Ints& v, int64_t x) {
  for (int64_t e : v)
    if (e == x) return true;
  return false;
}

DotSide SideOf(const Instruction* dot, int64_t operand);

// Whether `groups`, dimensions of `s` one after the other, ascend. Extents of 1 do not decide an order.
bool Ascend(const Shape& s, const std::vector<Ints>& groups);

// Bytes of the shortest rows that a transpose moves faster than their elements.
inline constexpr int64_t kShortestRow = 32;

// The type in which the products of `dot` are formed and added; `contracts`: it adds any.
PrimitiveType ProductType(const Instruction* dot, bool contracts);

// A dot without sparsity or dynamic extents.
bool IsPlainDot(const Instruction* i);

// The dot of `lhs` and `rhs` over the batch and contracting dimensions named, with the result type, precision and
// algorithm of `like`; `swapped` if the sides have changed places.
Expr DotLike(const Instruction* like, Expr lhs, const DotSide& l, Expr rhs, const DotSide& r, bool swapped = false);

// Whether multiplications and additions of f32 (of f64 for f64) are at least as exact as the algorithm asked for.
bool MultipliesAsAsked(const Instruction* dot);

// A dot, of an algorithm that MultipliesAsAsked, as a multiplication of spread operands and a sum over what it
// contracts. Narrow floats are added in f32.
Expr DotAsProducts(const Instruction* dot);

}  // namespace kiln
