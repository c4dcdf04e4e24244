#include "compiler/sharding/exact_number.h"

#include <cmath>
#include <functional>

namespace kiln {
namespace {

using residue::kBase;
using residue::kLarge;
using residue::kSmall;
using Kind = ExactNumber::Kind;

constexpr uint64_t kLogarithm = 1, kExponential = 2;  // names of functions

// e to the power of it.
std::optional<uint64_t> PowerOf(const ExactNumber& a) {
  if (a.small) return residue::Power(kBase, *a.small, kLarge);
  return a.power;
}

bool IsInfinite(const ExactNumber& a) { return a.kind == Kind::kInfinite || a.kind == Kind::kMinusInfinite; }

// Of what is neither, or of both.
ExactNumber Neither(const ExactNumber& a, const ExactNumber& b) {
  const bool unknown = a.kind == Kind::kUnknown || b.kind == Kind::kUnknown;
  return ExactNumber::OfKind(unknown ? Kind::kUnknown : Kind::kNotANumber);
}

bool IsNumber(const ExactNumber& a) { return a.IsFinite() || IsInfinite(a); }

// 0 where it is not known.
int SignOf(const ExactNumber& a) {
  if (IsInfinite(a)) return a.kind == Kind::kInfinite ? 1 : -1;
  if (a.constant) return *a.constant < 0 ? -1 : *a.constant > 0;
  return a.positive ? 1 : 0;
}

// Of an infinite product or quotient.
ExactNumber InfiniteOf(const ExactNumber& a, const ExactNumber& b) {
  const int sign = SignOf(a) * SignOf(b);
  if (a.IsZero() || b.IsZero()) return ExactNumber::OfKind(Kind::kNotANumber);
  return ExactNumber::OfKind(sign == 0 ? Kind::kUnknown : sign > 0 ? Kind::kInfinite : Kind::kMinusInfinite);
}

// `out` of two constants, where the result is a double too.
template <typename Op>
void Fold(const ExactNumber& a, const ExactNumber& b, Op op, ExactNumber* out) {
  if (!a.constant || !b.constant) return;
  const double x = op(*a.constant, *b.constant);
  if (std::isfinite(x) && residue::OfDouble(x, kLarge) == out->large) *out = ExactNumber::Of(x);
}

}  // namespace

ExactNumber ExactNumber::OfKind(Kind k) {
  ExactNumber out;
  out.kind = k;
  return out;
}

ExactNumber ExactNumber::Of(double x) {
  if (std::isnan(x)) return OfKind(kNotANumber);
  if (std::isinf(x)) return OfKind(x > 0 ? kInfinite : kMinusInfinite);
  ExactNumber out;
  out.large = residue::OfDouble(x, kLarge);
  out.small = residue::OfDouble(x, kSmall);
  out.positive = x > 0;
  out.given = true;
  out.constant = x;
  return out;
}

ExactNumber ExactNumber::Variable(uint64_t seed, bool positive) {
  ExactNumber out;
  out.large = residue::Mixed(seed, 1);
  out.small = residue::Mixed(seed, 2) % kSmall;
  out.positive = positive;
  out.given = true;
  return out;
}

ExactNumber ExactNumber::Pred(bool truth) {
  ExactNumber out;
  out.truth = truth;
  return out;
}

bool IsSame(const ExactNumber& a, const ExactNumber& b) {
  if (a.kind != b.kind || a.truth != b.truth || a.kind == Kind::kUnknown) return false;
  if (!a.IsFinite() || a.large == b.large) return true;
  const auto x = PowerOf(a), y = PowerOf(b);
  return x && y && *x == *y;
}

ExactNumber Negated(const ExactNumber& a) {
  if (IsInfinite(a)) return ExactNumber::OfKind(a.kind == Kind::kInfinite ? Kind::kMinusInfinite : Kind::kInfinite);
  if (!a.IsFinite()) return a;
  ExactNumber out;
  out.large = residue::Subtract(0, a.large, kLarge);
  if (a.small) out.small = residue::Subtract(0, *a.small, kSmall);
  if (a.power && *a.power) out.power = residue::Inverse(*a.power, kLarge);
  if (a.constant) out.constant = -*a.constant;
  out.positive = a.constant && *a.constant < 0;
  return out;
}

ExactNumber Sum(const ExactNumber& a, const ExactNumber& b) {
  if (!IsNumber(a) || !IsNumber(b)) return Neither(a, b);
  if (IsInfinite(a) || IsInfinite(b)) {
    if (IsInfinite(a) && IsInfinite(b) && a.kind != b.kind) return ExactNumber::OfKind(Kind::kNotANumber);
    return ExactNumber::OfKind(IsInfinite(a) ? a.kind : b.kind);
  }
  ExactNumber out;
  out.large = residue::Add(a.large, b.large, kLarge);
  if (a.small && b.small) {
    out.small = residue::Add(*a.small, *b.small, kSmall);
  } else if (const auto x = PowerOf(a), y = PowerOf(b); x && y) {
    out.power = residue::Multiply(*x, *y, kLarge);
  }
  const auto not_negative = [](const ExactNumber& n) { return n.positive || n.IsZero(); };
  out.positive = not_negative(a) && not_negative(b) && (a.positive || b.positive);
  Fold(a, b, std::plus<>(), &out);
  return out;
}

ExactNumber Product(const ExactNumber& a, const ExactNumber& b) {
  if (!IsNumber(a) || !IsNumber(b)) return Neither(a, b);
  if (IsInfinite(a) || IsInfinite(b)) return InfiniteOf(a, b);
  if (a.IsZero() || b.IsZero()) return ExactNumber::Of(0);
  ExactNumber out;
  out.large = residue::Multiply(a.large, b.large, kLarge);
  if (a.small && b.small) out.small = residue::Multiply(*a.small, *b.small, kSmall);
  out.positive = a.positive && b.positive;
  Fold(a, b, std::multiplies<>(), &out);
  return out;
}

ExactNumber Quotient(const ExactNumber& a, const ExactNumber& b) {
  if (!IsNumber(a) || !IsNumber(b)) return Neither(a, b);
  if (IsInfinite(b)) return IsInfinite(a) ? ExactNumber::OfKind(Kind::kNotANumber) : ExactNumber::Of(0);
  if (b.large == 0) return ExactNumber::OfKind(Kind::kUnknown);
  if (IsInfinite(a)) return InfiniteOf(a, b);
  ExactNumber inverse;
  inverse.large = residue::Inverse(b.large, kLarge);
  if (b.small && *b.small) inverse.small = residue::Inverse(*b.small, kSmall);
  inverse.positive = b.positive;
  return Product(a, inverse);
}

ExactNumber Exponential(const ExactNumber& a) {
  if (IsInfinite(a)) return a.kind == Kind::kInfinite ? a : ExactNumber::Of(0);
  if (!a.IsFinite()) return a;
  const auto power = PowerOf(a);
  if (!power) {
    ExactNumber out = FunctionOf(kExponential, {a});
    out.positive = true;
    return out;
  }
  if (*power == 1) return ExactNumber::Of(1);
  ExactNumber out;
  out.large = *power;
  out.positive = true;
  return out;
}

ExactNumber Logarithm(const ExactNumber& a) {
  if (a.IsZero()) return ExactNumber::OfKind(Kind::kMinusInfinite);
  if (a.kind == Kind::kInfinite || !IsNumber(a)) return a;
  if (!a.positive || a.large == 0) return ExactNumber::OfKind(Kind::kUnknown);
  if (a.large == 1) return ExactNumber::Of(0);
  ExactNumber out = FunctionOf(kLogarithm, {a});
  out.power = a.large;
  return out;
}

ExactNumber FunctionOf(uint64_t name, const std::vector<ExactNumber>& of) {
  ExactNumber out;
  out.large = residue::Mixed(name, 3);
  for (const ExactNumber& a : of) {
    if (!a.IsFinite()) return ExactNumber::OfKind(Kind::kUnknown);
    out.large = residue::Mixed(out.large, a.truth ? *a.truth : a.large);
  }
  return out;
}

}  // namespace kiln
