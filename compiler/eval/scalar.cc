#include "compiler/eval/scalar.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>

namespace kiln {
namespace {

using C = std::complex<double>;

C ToC(const Element& e) { return {e.re, e.im}; }
Element FromC(C c) {
  Element e;
  e.re = c.real();
  e.im = c.imag();
  return e;
}
Element FromD(double d) {
  Element e;
  e.re = d;
  return e;
}
Element FromI(int64_t i) {
  Element e;
  e.i = i;
  return e;
}

// Division without intermediate overflow: scale by powers of two first.
C ComplexDivide(C a, C b) {
  const double m = std::fmax(std::fabs(b.real()), std::fabs(b.imag()));
  int s = 0;
  double c = b.real(), d = b.imag();
  if (m > 0 && std::isfinite(m)) {
    s = std::ilogb(m);
    c = std::scalbn(c, -s);
    d = std::scalbn(d, -s);
  }
  const double den = c * c + d * d;
  double x = std::scalbn((a.real() * c + a.imag() * d) / den, -s);
  double y = std::scalbn((a.imag() * c - a.real() * d) / den, -s);
  if (std::isnan(x) && std::isnan(y)) {
    if (den == 0 && (!std::isnan(a.real()) || !std::isnan(a.imag()))) {
      x = std::copysign(INFINITY, c) * a.real();
      y = std::copysign(INFINITY, c) * a.imag();
    } else if ((std::isinf(a.real()) || std::isinf(a.imag())) && std::isfinite(c) && std::isfinite(d)) {
      const double p = std::copysign(std::isinf(a.real()) ? 1 : 0, a.real()),
                   q = std::copysign(std::isinf(a.imag()) ? 1 : 0, a.imag());
      x = INFINITY * (p * c + q * d);
      y = INFINITY * (q * c - p * d);
    } else if (std::isinf(m) && std::isfinite(a.real()) && std::isfinite(a.imag())) {
      const double p = std::copysign(std::isinf(c) ? 1 : 0, c), q = std::copysign(std::isinf(d) ? 1 : 0, d);
      x = 0 * (a.real() * p + a.imag() * q);
      y = 0 * (a.imag() * p - a.real() * q);
    }
  }
  return {x, y};
}

C ComplexAtan2(C z, C w) { return C(0, -1) * std::log((w + C(0, 1) * z) / std::sqrt(z * z + w * w)); }

C ComplexPower(C z, C w) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (z == C(0)) return w == C(0) ? C(1) : w.real() > 0 ? C(0) : C(nan, nan);
  return std::exp(w * std::log(z));
}

C ComplexExpm1(C z) {
  const double e = std::expm1(z.real()), s = std::sin(z.imag() / 2);
  return {e * std::cos(z.imag()) - 2 * s * s, std::exp(z.real()) * std::sin(z.imag())};
}

C ComplexLog1p(C z) {
  const C l = std::log(z + 1.0);
  const double m = z.real() * (2 + z.real()) + z.imag() * z.imag();
  return {std::abs(m) < 0.5 ? std::log1p(m) / 2 : l.real(), l.imag()};
}

// The functions of functions.def; nullopt for other opcodes.
std::optional<double> RealFunction(Opcode op, double x, double y) {
#define UNARY(opcode, stem, real, ...) \
  if (op == Opcode::opcode) return real;
#define BINARY UNARY
#define ROOT UNARY
#include "compiler/hlo/functions.def"
  return std::nullopt;
}

std::optional<C> ComplexFunction(Opcode op, C z, C w) {
#define FLOATS_ONLY std::nullopt
#define UNARY(opcode, stem, real, complex, ...) \
  if (op == Opcode::opcode) return complex;
#define BINARY UNARY
#define ROOT UNARY
#include "compiler/hlo/functions.def"
#undef FLOATS_ONLY
  return std::nullopt;
}

absl::StatusOr<Element> Integer(const Instruction& i, const Element* x, PrimitiveType t) {
  const int bits = InfoOf(t).bits;
  const bool sgn = IsSigned(t);
  const uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  const int64_t a = x[0].i, b = i.operand_count() > 1 ? x[1].i : 0;
  const uint64_t ua = static_cast<uint64_t>(a) & mask, ub = static_cast<uint64_t>(b) & mask;
  switch (i.opcode()) {
    case Opcode::Add:
      return FromI(static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)));
    case Opcode::Subtract:
      return FromI(static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)));
    case Opcode::Multiply:
      return FromI(static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
    case Opcode::Mulhi:
      if (sgn) return FromI(static_cast<int64_t>((static_cast<__int128>(a) * b) >> bits));
      return FromI(static_cast<int64_t>((static_cast<unsigned __int128>(ua) * ub) >> bits));
    case Opcode::Divide:
      if (b == 0) return FromI(-1);
      if (!sgn) return FromI(static_cast<int64_t>(ua / ub));
      return FromI(b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b);
    case Opcode::Remainder:
      if (b == 0) return FromI(a);
      if (!sgn) return FromI(static_cast<int64_t>(ua % ub));
      return FromI(b == -1 ? 0 : a % b);
    case Opcode::Maximum:
      return FromI(sgn ? std::max(a, b) : static_cast<int64_t>(std::max(ua, ub)));
    case Opcode::Minimum:
      return FromI(sgn ? std::min(a, b) : static_cast<int64_t>(std::min(ua, ub)));
    case Opcode::Power: {
      if (sgn && b < 0) return FromI(a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0);
      uint64_t r = 1, base = static_cast<uint64_t>(a), e = ub;
      for (; e; e >>= 1, base *= base)
        if (e & 1) r *= base;
      return FromI(static_cast<int64_t>(r));
    }
    case Opcode::And:
      return FromI(a & b);
    case Opcode::Or:
      return FromI(a | b);
    case Opcode::Xor:
      return FromI(a ^ b);
    case Opcode::Not:
      return FromI(t == PrimitiveType::Pred ? !a : ~a);
    case Opcode::Negate:
      return FromI(static_cast<int64_t>(-static_cast<uint64_t>(a)));
    case Opcode::Abs:
      return FromI(sgn && a < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a);
    case Opcode::Sign:
      return FromI(sgn ? (a > 0) - (a < 0) : ua != 0);
    case Opcode::ShiftLeft:
      return FromI(ub >= static_cast<uint64_t>(bits) ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << ub));
    case Opcode::ShiftRightLogical:
      return FromI(ub >= static_cast<uint64_t>(bits) ? 0 : static_cast<int64_t>(ua >> ub));
    case Opcode::ShiftRightArithmetic: {
      const int64_t v = bits >= 64 ? a : static_cast<int64_t>(ua << (64 - bits)) >> (64 - bits);
      return FromI(v >> (ub >= static_cast<uint64_t>(bits) ? 63 : static_cast<int>(ub)));
    }
    case Opcode::Popcnt:
      return FromI(__builtin_popcountll(ua));
    case Opcode::CountLeadingZeros:
      return FromI(ua == 0 ? bits : __builtin_clzll(ua) - (64 - bits));
    default:
      return ErrorAt(&i, absl::StrCat("has no meaning on ", TextOf(t)), absl::StatusCode::kUnimplemented);
  }
}

// A finite number as XLA reduces it: on the bits of its type (f16's, where that is narrower), to the nearest and of two
// to the even bits, which are the exponent's where no mantissa is left; then to the range, if that is a narrower one.
double ReducedPrecision(double a, PrimitiveType t, int exponent_bits, int mantissa_bits) {
  const TypeInfo& own = InfoOf(InfoOf(t).bits <= 8 ? PrimitiveType::F16 : t);
  const auto bias_of = [](int bits) { return (1 << (bits - 1)) - 1; };
  const int own_bias = bias_of(own.exponent_bits), bias = bias_of(exponent_bits);
  double r = a;
  if (mantissa_bits < own.mantissa_bits) {
    const int exponent = std::max(std::ilogb(a), 1 - own_bias);
    const double unit = std::scalbn(1.0, exponent - mantissa_bits), places = a / unit;
    const bool to_zero = mantissa_bits == 0 && std::fabs(places) == 1.5 && (exponent + own_bias) % 2 == 0;
    r = (to_zero ? std::trunc(places) : std::nearbyint(places)) * unit;
  }
  if (exponent_bits >= own.exponent_bits) return r;
  if (std::ilogb(r) > bias) return std::copysign(INFINITY, a);
  return std::ilogb(r) < 1 - bias ? std::copysign(0.0, a) : r;
}

absl::StatusOr<Element> Real(const Instruction& i, const Element* x, PrimitiveType t) {
  const double a = x[0].re, b = i.operand_count() > 1 ? x[1].re : 0;
  if (const auto y = RealFunction(i.opcode(), a, b)) return FromD(*y);
  switch (i.opcode()) {
    case Opcode::Add:
      return FromD(a + b);
    case Opcode::Subtract:
      return FromD(a - b);
    case Opcode::Multiply:
      return FromD(a * b);
    case Opcode::Divide:
      return FromD(a / b);
    case Opcode::Remainder:
      return FromD(std::fmod(a, b));
    case Opcode::Maximum:
      return FromD(std::isnan(a) || std::isnan(b) ? NAN : a == b ? (std::signbit(a) ? b : a) : std::max(a, b));
    case Opcode::Minimum:
      return FromD(std::isnan(a) || std::isnan(b) ? NAN : a == b ? (std::signbit(a) ? a : b) : std::min(a, b));
    case Opcode::Negate:
      return FromD(-a);
    case Opcode::Abs:
      return FromD(std::fabs(a));
    case Opcode::Sign:
      return FromD(std::isnan(a) || a == 0 ? a : a > 0 ? 1 : -1);
    case Opcode::Ceil:
      return FromD(std::ceil(a));
    case Opcode::Floor:
      return FromD(std::floor(a));
    case Opcode::RoundNearestAfz:
      return FromD(std::round(a));
    case Opcode::RoundNearestEven:
      return FromD(std::nearbyint(a));
    case Opcode::Real:
      return FromD(a);
    case Opcode::Imag:
      return FromD(0);
    case Opcode::IsFinite:
      return FromI(std::isfinite(a));
    case Opcode::ReducePrecision: {
      const int64_t e = *i.attrs().exponent_bits, m = *i.attrs().mantissa_bits;
      if (std::isnan(a) && m == 0) return FromD(std::copysign(INFINITY, a));  // no bit is left to tell it by
      if (!std::isfinite(a) || a == 0) return FromD(a);
      return FromD(ReducedPrecision(a, t, static_cast<int>(e), static_cast<int>(m)));
    }
    default:
      return ErrorAt(&i, absl::StrCat("has no meaning on ", TextOf(t)), absl::StatusCode::kUnimplemented);
  }
}

absl::StatusOr<Element> Complex(const Instruction& i, const Element* x, PrimitiveType t) {
  const C a = ToC(x[0]), b = i.operand_count() > 1 ? ToC(x[1]) : C(0);
  if (const auto y = ComplexFunction(i.opcode(), a, b)) return FromC(*y);
  switch (i.opcode()) {
    case Opcode::Add:
      return FromC(a + b);
    case Opcode::Subtract:
      return FromC(a - b);
    case Opcode::Multiply:
      return FromC({a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()});
    case Opcode::Divide:
      return FromC(ComplexDivide(a, b));
    case Opcode::Maximum:
    case Opcode::Minimum: {
      // By the real part, then the imaginary one.
      if (std::isnan(a.real()) || std::isnan(a.imag())) return FromC(a);
      if (std::isnan(b.real()) || std::isnan(b.imag())) return FromC(b);
      const bool less = a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
      return FromC(less == i.Is(Opcode::Maximum) ? b : a);  // equal ones differ in the signs of zeros at most
    }
    case Opcode::Negate:
      return FromC(-a);
    case Opcode::Abs:
      return FromD(std::hypot(a.real(), a.imag()));
    case Opcode::Sign:
      return FromC(a == C(0) ? a : a / std::abs(a));
    case Opcode::Real:
      return FromD(a.real());
    case Opcode::Imag:
      return FromD(a.imag());
    case Opcode::IsFinite:
      return FromI(std::isfinite(a.real()) && std::isfinite(a.imag()));
    default:
      return ErrorAt(&i, absl::StrCat("has no meaning on ", TextOf(t)), absl::StatusCode::kUnimplemented);
  }
}

bool Compare(Direction d, int order, bool unordered) {
  if (unordered) return d == Direction::NE;
  if (d == Direction::EQ) return order == 0;
  if (d == Direction::NE) return order != 0;
  if (d == Direction::LT) return order < 0;
  if (d == Direction::LE) return order <= 0;
  if (d == Direction::GT) return order > 0;
  return order >= 0;
}

}  // namespace

int TotalOrder(const Element& a, const Element& b, PrimitiveType t) {
  if (IsFloat(t)) {
    auto key = [](double d) {
      int64_t k;
      std::memcpy(&k, &d, 8);
      return k < 0 ? k ^ std::numeric_limits<int64_t>::max() : k;
    };
    const int64_t x = key(a.re), y = key(b.re);
    return (x > y) - (x < y);
  }
  if (IsUnsigned(t) || t == PrimitiveType::Pred) {
    const uint64_t x = static_cast<uint64_t>(a.i), y = static_cast<uint64_t>(b.i);
    return (x > y) - (x < y);
  }
  return (a.i > b.i) - (a.i < b.i);
}

Element ConvertElement(const Element& v, PrimitiveType from, PrimitiveType to) {
  const bool from_int = IsIntegral(from) || from == PrimitiveType::Pred;
  if (to == PrimitiveType::Pred) return FromI(from_int ? v.i != 0 : v.re != 0);
  if (IsIntegral(to)) {
    if (from_int) return FromI(v.i);
    const double d = std::trunc(v.re);
    if (std::isnan(d)) return FromI(0);
    const int bits = InfoOf(to).bits;
    if (IsSigned(to)) {
      const double hi = std::scalbn(1.0, bits - 1);
      if (d >= hi) return FromI(bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1);
      if (d < -hi) return FromI(bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1)));
      return FromI(static_cast<int64_t>(d));
    }
    if (d <= 0) return FromI(0);
    if (d >= std::scalbn(1.0, bits)) return FromI(bits == 64 ? -1 : static_cast<int64_t>((1ull << bits) - 1));
    return FromI(static_cast<int64_t>(static_cast<uint64_t>(d)));
  }
  if (!from_int) return v;
  if (!IsUnsigned(from) || v.i >= 0) {
    if (ComponentType(to) == PrimitiveType::F32) return FromD(static_cast<float>(v.i));  // one rounding
    if (ComponentType(to) == PrimitiveType::F64 || std::llabs(v.i) <= (int64_t{1} << 53))
      return FromD(static_cast<double>(v.i));
    // Wider than a double: round to odd first, so that the second rounding is correct.
    double d = static_cast<double>(v.i);
    if (static_cast<__int128>(d) != v.i) {
      int64_t bits;
      std::memcpy(&bits, &d, 8);
      if (!(bits & 1)) bits += (static_cast<__int128>(d) < v.i) == (d > 0) ? 1 : -1;
      std::memcpy(&d, &bits, 8);
    }
    return FromD(d);
  }
  const uint64_t u = static_cast<uint64_t>(v.i);
  if (ComponentType(to) == PrimitiveType::F32) return FromD(static_cast<float>(u));
  return FromD(static_cast<double>(u));
}

absl::StatusOr<Element> EvaluateScalar(const Instruction& i, const Element* x) {
  const PrimitiveType t = i.operand(0)->shape().type();
  switch (i.opcode()) {
    case Opcode::Convert:
      return ConvertElement(x[0], t, i.shape().type());
    case Opcode::Copy:
      return x[0];
    case Opcode::Select:
      return x[0].i ? x[1] : x[2];
    case Opcode::Complex: {
      Element e;
      e.re = x[0].re;
      e.im = x[1].re;
      return e;
    }
    case Opcode::Clamp: {
      const PrimitiveType v = i.shape().type();
      if (IsFloat(v)) {
        if (std::isnan(x[0].re) || std::isnan(x[1].re) || std::isnan(x[2].re)) return FromD(NAN);
        return FromD(std::fmin(std::fmax(x[1].re, x[0].re), x[2].re));
      }
      Element r = TotalOrder(x[1], x[0], v) < 0 ? x[0] : x[1];
      return TotalOrder(r, x[2], v) > 0 ? x[2] : r;
    }
    case Opcode::Compare: {
      const Direction d = *i.attrs().direction;
      if (IsComplex(t)) {
        const bool eq = x[0].re == x[1].re && x[0].im == x[1].im;
        return FromI(d == Direction::EQ ? eq : !eq);
      }
      const bool total = i.attrs().compare_type == CompareType::TOTALORDER;
      if (IsFloat(t) && !total) {
        const double a = x[0].re, b = x[1].re;
        return FromI(Compare(d, (a > b) - (a < b), std::isnan(a) || std::isnan(b)));
      }
      return FromI(Compare(d, TotalOrder(x[0], x[1], t), false));
    }
    case Opcode::StochasticConvert: {
      const double a = x[0].re;
      const PrimitiveType to = i.shape().type();
      if (!std::isfinite(a)) return ConvertElement(x[0], t, to);
      const double whole = std::trunc(std::fabs(a)), frac = std::fabs(a) - whole;
      const int bits = InfoOf(i.operand(1)->shape().type()).bits;
      const double r = std::scalbn(static_cast<double>(static_cast<uint64_t>(x[1].i)), -bits);
      return ConvertElement(FromD(std::copysign(whole + (r < frac ? 1 : 0), a)), t, to);
    }
    default:
      break;
  }
  if (IsComplex(t)) return Complex(i, x, t);
  if (IsFloat(t)) return Real(i, x, t);
  if (t == PrimitiveType::Pred) {
    switch (i.opcode()) {
      case Opcode::Add:
      case Opcode::Maximum:
        return FromI(x[0].i | x[1].i);
      case Opcode::Multiply:
      case Opcode::Minimum:
        return FromI(x[0].i & x[1].i);
      case Opcode::Subtract:
        return FromI(x[0].i ^ x[1].i);
      default:
        break;
    }
  }
  return Integer(i, x, t);
}

}  // namespace kiln
