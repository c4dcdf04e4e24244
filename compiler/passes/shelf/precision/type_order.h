// Which float types hold every value of which.
#pragma once

#include "compiler/hlo/types.h"

namespace kiln {

// Whether every value of float type `narrow` is a value of `wide`.
inline bool HoldsEvery(PrimitiveType wide, PrimitiveType narrow) {
  using P = PrimitiveType;
  if (wide == narrow || wide == P::F64) return true;
  if (wide == P::F32) return narrow != P::F64;
  // Above a byte only bf16 and f16 are left; both hold the small formats but the one of 8 exponent bits.
  if (wide == P::BF16) return narrow != P::F64 && narrow != P::F32 && narrow != P::F16;
  if (wide == P::F16) return BitWidth(narrow) <= 8 && narrow != P::F8E8M0FNU;
  return false;
}

}  // namespace kiln
