#include "compiler/hlo/types.h"

#include <cmath>
#include <cstring>

#include "absl/container/flat_hash_map.h"

namespace kiln {
namespace {

constexpr TypeInfo kTypes[] = {
#define TYPE(e, text, bits, proto, cls, eb, mb, fl) \
  {PrimitiveType::e, text, bits, proto, TypeClass::cls, eb, mb, FloatFlavour::fl},
#include "compiler/hlo/types.def"
};

uint64_t NanBits(const TypeInfo& f) {
  const uint64_t exp_ones = ((1ull << f.exponent_bits) - 1) << f.mantissa_bits;
  switch (f.flavour) {
    case FloatFlavour::Ieee:
      return exp_ones | (1ull << (f.mantissa_bits - 1));
    case FloatFlavour::Fn:
      return exp_ones | ((1ull << f.mantissa_bits) - 1);
    case FloatFlavour::Fnuz:
      return 1ull << (f.bits - 1);
    case FloatFlavour::Exponent:
      return 0xff;
    default:
      return 1ull << (f.bits - 1);  // Finite: no NaN; negative zero, as the MX formats' converters do
  }
}

// Largest finite magnitude's bits.
uint64_t MaxFiniteBits(const TypeInfo& f) {
  const uint64_t all = (1ull << (f.exponent_bits + f.mantissa_bits)) - 1;
  switch (f.flavour) {
    case FloatFlavour::Ieee:
      return (((1ull << f.exponent_bits) - 1) << f.mantissa_bits) - 1;
    case FloatFlavour::Fn:
      return all - 1;
    default:
      return all;
  }
}

}  // namespace

const TypeInfo& InfoOf(PrimitiveType type) { return kTypes[static_cast<int>(type)]; }

std::optional<PrimitiveType> TypeFromText(absl::string_view text) {
  static const auto* map = [] {
    auto* m = new absl::flat_hash_map<absl::string_view, PrimitiveType>;
    for (const TypeInfo& t : kTypes)
      if (t.type != PrimitiveType::Tuple) (*m)[t.text] = t.type;
    return m;
  }();
  auto it = map->find(text);
  if (it == map->end()) return std::nullopt;
  return it->second;
}

std::optional<PrimitiveType> TypeFromProto(int number) {
  for (const TypeInfo& t : kTypes)
    if (t.proto == number) return t.type;
  return std::nullopt;
}

PrimitiveType ComponentType(PrimitiveType t) {
  if (t == PrimitiveType::C64) return PrimitiveType::F32;
  if (t == PrimitiveType::C128) return PrimitiveType::F64;
  return t;
}

PrimitiveType ComplexOf(PrimitiveType t) { return t == PrimitiveType::F64 ? PrimitiveType::C128 : PrimitiveType::C64; }

int ExponentBias(PrimitiveType t) {
  if (t == PrimitiveType::F8E4M3B11FNUZ) return 11;
  const TypeInfo& f = InfoOf(t);
  const int ieee = (1 << (f.exponent_bits - 1)) - 1;
  return f.flavour == FloatFlavour::Fnuz ? ieee + 1 : ieee;
}

uint64_t EncodeFloat(PrimitiveType t, double value) {
  if (t == PrimitiveType::F64) {
    uint64_t b;
    std::memcpy(&b, &value, 8);
    return b;
  }
  if (t == PrimitiveType::F32) {
    const float f = static_cast<float>(value);
    uint32_t b;
    std::memcpy(&b, &f, 4);
    return b;
  }
  const TypeInfo& f = InfoOf(t);
  if (std::isnan(value))
    return NanBits(f) | (f.flavour == FloatFlavour::Ieee && std::signbit(value) ? 1ull << (f.bits - 1) : 0);
  const int bias = ExponentBias(t);
  if (f.flavour == FloatFlavour::Exponent) {
    const float single = static_cast<float>(value);  // as XLA's conversions go
    if (single <= 0 || std::isinf(single)) return 0xff;
    int e;
    const float m = std::frexp(single, &e);  // value = m * 2^e, m in [0.5, 1)
    int64_t code = e - 1 + bias + (m >= 0.75 ? 1 : 0);
    return code < 0 ? 0 : code > 254 ? 0xff : static_cast<uint64_t>(code);
  }
  const uint64_t sign = std::signbit(value) ? 1ull << (f.bits - 1) : 0;
  const double mag = std::fabs(value);
  if (mag == 0) return f.flavour == FloatFlavour::Fnuz ? 0 : sign;
  const bool saturates = f.flavour == FloatFlavour::Finite;
  if (std::isinf(mag)) {
    if (f.flavour == FloatFlavour::Ieee) return sign | (((1ull << f.exponent_bits) - 1) << f.mantissa_bits);
    return saturates ? sign | MaxFiniteBits(f) : NanBits(f) | (f.flavour == FloatFlavour::Fn ? sign : 0);
  }
  int e;
  std::frexp(mag, &e);
  e -= 1;  // mag = 1.x * 2^e
  const int min_exp = 1 - bias;
  const int quantum_exp = std::max(e, min_exp) - f.mantissa_bits;
  // Exact: a double scaled by a power of two; the result needs at most 53 bits. nearbyint is to nearest even.
  uint64_t q = static_cast<uint64_t>(std::nearbyint(std::ldexp(mag, -quantum_exp)));
  uint64_t bits;
  if (e < min_exp) {
    bits = q;  // subnormal; a carry into the implicit bit is the smallest normal
  } else {
    if (q >> (f.mantissa_bits + 1)) {
      q >>= 1;
      ++e;
    }
    const int64_t biased = e + bias;
    if (biased >= (1 << f.exponent_bits)) {
      bits = ~0ull >> 1;
    } else {
      bits = (static_cast<uint64_t>(biased) << f.mantissa_bits) | (q & ((1ull << f.mantissa_bits) - 1));
    }
  }
  if (bits > MaxFiniteBits(f)) {
    if (f.flavour == FloatFlavour::Ieee) return sign | (((1ull << f.exponent_bits) - 1) << f.mantissa_bits);
    return saturates ? sign | MaxFiniteBits(f) : NanBits(f) | (f.flavour == FloatFlavour::Fn ? sign : 0);
  }
  if (bits == 0 && f.flavour == FloatFlavour::Fnuz) return 0;
  return sign | bits;
}

double DecodeFloat(PrimitiveType t, uint64_t bits) {
  if (t == PrimitiveType::F64) {
    double d;
    std::memcpy(&d, &bits, 8);
    return d;
  }
  if (t == PrimitiveType::F32) {
    const uint32_t b = static_cast<uint32_t>(bits);
    float d;
    std::memcpy(&d, &b, 4);
    return d;
  }
  const TypeInfo& f = InfoOf(t);
  const int bias = ExponentBias(t);
  if (f.flavour == FloatFlavour::Exponent) {
    return (bits & 0xff) == 0xff ? std::nan("") : std::ldexp(1.0, static_cast<int>(bits & 0xff) - bias);
  }
  const bool neg = (bits >> (f.bits - 1)) & 1;
  const uint64_t mag = bits & ((1ull << (f.bits - 1)) - 1);
  if (f.flavour == FloatFlavour::Fnuz && neg && mag == 0) return std::nan("");
  const uint64_t exp = mag >> f.mantissa_bits;
  const uint64_t man = mag & ((1ull << f.mantissa_bits) - 1);
  const double sign = neg ? -1.0 : 1.0;
  if (f.flavour == FloatFlavour::Ieee && exp == (1ull << f.exponent_bits) - 1) {
    if (man) return std::copysign(std::nan(""), sign);
    return sign * INFINITY;
  }
  if (f.flavour == FloatFlavour::Fn && mag == (1ull << (f.bits - 1)) - 1) return std::copysign(std::nan(""), sign);
  if (exp == 0) return sign * std::ldexp(static_cast<double>(man), 1 - bias - f.mantissa_bits);
  return sign * std::ldexp(static_cast<double>(man | (1ull << f.mantissa_bits)),
                           static_cast<int>(exp) - bias - f.mantissa_bits);
}

double RoundToType(PrimitiveType t, double value) {
  if (t == PrimitiveType::F64) return value;
  if (t == PrimitiveType::F32) return static_cast<float>(value);
  return DecodeFloat(t, EncodeFloat(t, value));
}

}  // namespace kiln
