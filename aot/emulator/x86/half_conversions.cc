// AVX512-FP16: conversions.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "aot/emulator/x86/evex_operands.h"
#include "aot/emulator/x86/extensions.h"
#include "aot/emulator/x86/half.h"

namespace kiln::x86 {
namespace {

enum class Type { kHalf, kFloat, kDouble, kSigned, kUnsigned };
struct Number {
  Type type;
  int bytes;
};
constexpr Number kF16 = {Type::kHalf, 2}, kF32 = {Type::kFloat, 4}, kF64 = {Type::kDouble, 8},
                 kS16 = {Type::kSigned, 2}, kU16 = {Type::kUnsigned, 2}, kS32 = {Type::kSigned, 4},
                 kU32 = {Type::kUnsigned, 4}, kS64 = {Type::kSigned, 8}, kU64 = {Type::kUnsigned, 8};

enum Form { kPacked, kScalar, kFromGeneral, kToGeneral };

struct Conversion {
  Prefix prefix;
  bool w;
  int map, opcode;
  Number from, to;
  Form form = kPacked;
  bool truncates = false;
};
constexpr Prefix kNone = Prefix::kNone, k66 = Prefix::k66, kF3 = Prefix::kF3, kF2 = Prefix::kF2;
constexpr Conversion kConversions[] = {
    {k66, false, kMap5, 0x1d, kF32, kF16},
    {k66, false, kMap6, 0x13, kF16, kF32},
    {kNone, false, kMap5, 0x1d, kF32, kF16, kScalar},
    {kNone, false, kMap6, 0x13, kF16, kF32, kScalar},
    {kNone, false, kMap5, 0x5a, kF16, kF64},
    {k66, true, kMap5, 0x5a, kF64, kF16},
    {kF3, false, kMap5, 0x5a, kF16, kF64, kScalar},
    {kF2, true, kMap5, 0x5a, kF64, kF16, kScalar},
    {kF3, false, kMap5, 0x7d, kS16, kF16},
    {kF2, false, kMap5, 0x7d, kU16, kF16},
    {k66, false, kMap5, 0x7d, kF16, kS16},
    {kNone, false, kMap5, 0x7d, kF16, kU16},
    {k66, false, kMap5, 0x7c, kF16, kS16, kPacked, true},
    {kNone, false, kMap5, 0x7c, kF16, kU16, kPacked, true},
    {kNone, false, kMap5, 0x5b, kS32, kF16},
    {kF2, false, kMap5, 0x7a, kU32, kF16},
    {k66, false, kMap5, 0x5b, kF16, kS32},
    {kF3, false, kMap5, 0x5b, kF16, kS32, kPacked, true},
    {kNone, false, kMap5, 0x79, kF16, kU32},
    {kNone, false, kMap5, 0x78, kF16, kU32, kPacked, true},
    {kNone, true, kMap5, 0x5b, kS64, kF16},
    {kF2, true, kMap5, 0x7a, kU64, kF16},
    {k66, false, kMap5, 0x7b, kF16, kS64},
    {k66, false, kMap5, 0x7a, kF16, kS64, kPacked, true},
    {k66, false, kMap5, 0x79, kF16, kU64},
    {k66, false, kMap5, 0x78, kF16, kU64, kPacked, true},
    {kF3, false, kMap5, 0x2a, kS32, kF16, kFromGeneral},
    {kF3, true, kMap5, 0x2a, kS64, kF16, kFromGeneral},
    {kF3, false, kMap5, 0x7b, kU32, kF16, kFromGeneral},
    {kF3, true, kMap5, 0x7b, kU64, kF16, kFromGeneral},
    {kF3, false, kMap5, 0x2d, kF16, kS32, kToGeneral},
    {kF3, true, kMap5, 0x2d, kF16, kS64, kToGeneral},
    {kF3, false, kMap5, 0x2c, kF16, kS32, kToGeneral, true},
    {kF3, true, kMap5, 0x2c, kF16, kS64, kToGeneral, true},
    {kF3, false, kMap5, 0x79, kF16, kU32, kToGeneral},
    {kF3, true, kMap5, 0x79, kF16, kU64, kToGeneral},
    {kF3, false, kMap5, 0x78, kF16, kU32, kToGeneral, true},
    {kF3, true, kMap5, 0x78, kF16, kU64, kToGeneral, true},
};

// Integers of 64 bits that a double does not hold are beyond f16, the only type they become.
double Value(uint64_t bits, Number n) {
  switch (n.type) {
    case Type::kHalf:
      return FromHalf(bits);
    case Type::kFloat: {
      float x;
      std::memcpy(&x, &bits, sizeof x);
      return x;
    }
    case Type::kDouble: {
      double x;
      std::memcpy(&x, &bits, sizeof x);
      return x;
    }
    case Type::kUnsigned:
      return static_cast<double>(bits);
    case Type::kSigned:
      break;
  }
  const int unused = 64 - 8 * n.bytes;
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
}

// What is out of range, or no number, becomes the least signed or the largest unsigned integer.
uint64_t Integer(double x, Number n, bool truncates) {
  const double whole = truncates ? std::trunc(x) : std::nearbyint(x);
  if (n.type == Type::kUnsigned)
    return whole >= 0 && whole < std::ldexp(1.0, 8 * n.bytes) ? static_cast<uint64_t>(whole) : ~uint64_t{0};
  const double limit = std::ldexp(1.0, 8 * n.bytes - 1);
  return whole >= -limit && whole < limit ? static_cast<uint64_t>(static_cast<int64_t>(whole))
                                          : uint64_t{1} << (8 * n.bytes - 1);
}

uint64_t Bits(double x, const Conversion& c) {
  uint64_t bits = 0;
  switch (c.to.type) {
    case Type::kHalf:
      return ToHalf(x);
    case Type::kFloat: {
      const auto narrow = static_cast<float>(x);
      std::memcpy(&bits, &narrow, sizeof narrow);
      return bits;
    }
    case Type::kDouble:
      std::memcpy(&bits, &x, sizeof x);
      return bits;
    case Type::kSigned:
    case Type::kUnsigned:
      break;
  }
  return Integer(x, c.to, c.truncates);
}

void Convert(const Conversion& c, const Decoded& d, const EvexOperands& operands, ucontext_t* context) {
  const auto converted = [&](uint64_t bits) { return Bits(Value(bits, c.from), c); };
  if (c.form == kPacked) {
    const int count = d.vector_bytes / std::max(c.from.bytes, c.to.bytes);
    return operands.Put(count, c.to.bytes,
                        [&](int k) { return converted(operands.Source(k, c.from.bytes, count * c.from.bytes)); });
  }
  if (c.form == kToGeneral) {
    const uint64_t value = converted(operands.Source(0, c.from.bytes, c.from.bytes));
    *GeneralRegister(context, d.reg & 15) = static_cast<greg_t>(c.to.bytes == 4 ? value & 0xffffffff : value);
    return;
  }
  operands.PutScalar(c.to.bytes, operands.second(), [&](int) {
    if (c.form != kFromGeneral || d.memory) return converted(operands.Source(0, c.from.bytes, c.from.bytes));
    uint64_t from = 0;
    std::memcpy(&from, GeneralRegister(context, d.rm & 15), static_cast<size_t>(c.from.bytes));
    return converted(from);
  });
}

}  // namespace

bool ConvertHalves(const Decoded& d, const EvexOperands& operands, ucontext_t* context) {
  for (const Conversion& c : kConversions) {
    if (c.prefix != d.prefix || c.w != d.w || c.map != d.map || c.opcode != d.opcode) continue;
    Convert(c, d, operands, context);
    return true;
  }
  return false;
}

}  // namespace kiln::x86
