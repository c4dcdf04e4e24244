#include "aot/emulator/x86/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kiln::x86 {
namespace {

constexpr int kFraction = 10, kLeastExponent = -14, kSpecial = 31, kDoubleFraction = 52;
constexpr uint64_t kSign = 0x8000, kInfinity = 0x7c00, kQuiet = 0x200, kFractionBits = 0x3ff;

uint64_t BitsOf(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

double FromBits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace

double FromHalf(uint64_t bits) {
  const int exponent = bits >> kFraction & kSpecial;
  const uint64_t fraction = bits & kFractionBits;
  double magnitude;
  if (exponent == kSpecial)
    magnitude = FromBits(uint64_t{0x7ff} << kDoubleFraction | fraction << (kDoubleFraction - kFraction));
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<double>(fraction), kLeastExponent - kFraction);
  else
    magnitude =
        std::ldexp(static_cast<double>(fraction | (kFractionBits + 1)), exponent - 1 + kLeastExponent - kFraction);
  return bits & kSign ? -magnitude : magnitude;
}

uint64_t ToHalf(double x) {
  constexpr double kRoundsToInfinity = 65520;
  const uint64_t sign = std::signbit(x) ? kSign : 0;
  if (std::isnan(x)) return sign | kInfinity | kQuiet | (BitsOf(x) >> (kDoubleFraction - kFraction) & kFractionBits);
  const double magnitude = std::fabs(x);
  if (magnitude >= kRoundsToInfinity) return sign | kInfinity;
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), kLeastExponent);
  // The bit above the fraction, which only normal numbers have, adds one to the exponent, and so does rounding up to
  // the next power of two.
  const double fraction = std::nearbyint(std::ldexp(magnitude, kFraction - exponent));
  return sign | ((static_cast<uint64_t>(exponent - kLeastExponent) << kFraction) + static_cast<uint64_t>(fraction));
}

// The sum is rounded to odd: of a sum that is not exact, the last bit says that there is more.
double MultiplyAdd(double a, double b, double c) {
  const double product = a * b, sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double from_c = sum - product, error = (product - (sum - from_c)) + (c - from_c);
  const uint64_t bits = BitsOf(sum);
  if (error == 0 || (bits & 1)) return sum;
  return FromBits((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

}  // namespace kiln::x86
