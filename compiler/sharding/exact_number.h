// A number that an expression of variables stands for, as far as its residues tell.
//
// What: numbers, infinities and what is no number, under the operations of reducers: sums, products, quotients,
//   exponentials and logarithms by rule, others as functions of which nothing is known.
// Guarantees: two that are the same by IsSame are equal whatever finite numbers the variables are (residue.h); nothing
//   is said of two that are not. Rounding does not count.
#pragma once

#include <optional>

#include "compiler/hlo/literal.h"
#include "compiler/sharding/residue.h"

namespace kiln {

struct ExactNumber {
  // kUnknown: may be any of the others.
  enum Kind { kFinite, kInfinite, kMinusInfinite, kNotANumber, kUnknown };

  Kind kind = kFinite;
  uint64_t large = 0;             // modulo residue::kLarge
  std::optional<uint64_t> small;  // modulo residue::kSmall; absent of what exponentials and the like are in
  std::optional<uint64_t> power;  // of logarithms: e to it, modulo residue::kLarge
  bool positive = false;          // certainly
  bool given = false;             // a variable or a constant as it is
  std::optional<double> constant;
  std::optional<bool> truth;  // of a pred

  static ExactNumber Of(double x);
  static ExactNumber Variable(uint64_t seed, bool positive);
  static ExactNumber Pred(bool truth);
  static ExactNumber OfKind(Kind k);
  bool IsFinite() const { return kind == kFinite; }
  bool IsZero() const { return constant && *constant == 0; }
};

bool IsSame(const ExactNumber& a, const ExactNumber& b);

ExactNumber Negated(const ExactNumber& a);
ExactNumber Sum(const ExactNumber& a, const ExactNumber& b);
ExactNumber Product(const ExactNumber& a, const ExactNumber& b);
ExactNumber Quotient(const ExactNumber& a, const ExactNumber& b);
ExactNumber Exponential(const ExactNumber& a);
ExactNumber Logarithm(const ExactNumber& a);
// A function of which nothing is known but that it is one, with a number for its name.
ExactNumber FunctionOf(uint64_t name, const std::vector<ExactNumber>& of);

}  // namespace kiln
