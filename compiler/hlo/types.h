// Element types of HLO and the numeric formats behind them.
//
// What: the enum of types.def, its traits, and conversion between a double and the bits of any small float.
// Guarantees: EncodeFloat rounds to nearest even in one step from the double (never through a narrower format),
//   overflows as the format's flavour says, and keeps NaN a NaN.
// Source: types.def; the OCP 8-bit and MX specifications for the narrow formats.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace kiln {

enum class PrimitiveType : uint8_t {
#define TYPE(e, ...) e,
#include "compiler/hlo/types.def"
};

enum class TypeClass : uint8_t { Pred, Signed, Unsigned, Float, Complex, Other };
enum class FloatFlavour : uint8_t { None, Ieee, Fn, Fnuz, Finite, Exponent };

struct TypeInfo {
  PrimitiveType type;
  absl::string_view text;
  int bits;
  int proto;
  TypeClass cls;
  int exponent_bits;
  int mantissa_bits;
  FloatFlavour flavour;
};

const TypeInfo& InfoOf(PrimitiveType type);
std::optional<PrimitiveType> TypeFromText(absl::string_view text);
std::optional<PrimitiveType> TypeFromProto(int number);

inline TypeClass ClassOf(PrimitiveType t) { return InfoOf(t).cls; }
inline absl::string_view TextOf(PrimitiveType t) { return InfoOf(t).text; }
inline bool IsFloat(PrimitiveType t) { return ClassOf(t) == TypeClass::Float; }
inline bool IsComplex(PrimitiveType t) { return ClassOf(t) == TypeClass::Complex; }
inline bool IsSigned(PrimitiveType t) { return ClassOf(t) == TypeClass::Signed; }
inline bool IsUnsigned(PrimitiveType t) { return ClassOf(t) == TypeClass::Unsigned; }
inline bool IsIntegral(PrimitiveType t) { return IsSigned(t) || IsUnsigned(t); }
inline bool IsArrayType(PrimitiveType t) { return ClassOf(t) != TypeClass::Other; }
inline int64_t BitWidth(PrimitiveType t) { return InfoOf(t).bits; }
// Bytes that one element takes in memory: sub-byte types take a byte each.
inline int64_t ByteWidth(PrimitiveType t) { return (InfoOf(t).bits + 7) / 8; }
// The real type of a complex type's parts; any other type itself.
PrimitiveType ComponentType(PrimitiveType t);
// The complex type whose parts are `t` (F32 -> C64, F64 -> C128).
PrimitiveType ComplexOf(PrimitiveType t);
// Exponent bias of a float format.
int ExponentBias(PrimitiveType t);

// Bits of `value` in float format `t` (any but F32/F64 go through the generic path), and back.
uint64_t EncodeFloat(PrimitiveType t, double value);
double DecodeFloat(PrimitiveType t, uint64_t bits);
// `value` rounded to `t` and widened again.
double RoundToType(PrimitiveType t, double value);

}  // namespace kiln
