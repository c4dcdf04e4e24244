// How far rewrites by algebra may change results: a choice of the user's (config: numerics.algebra).
#pragma once

#include <cstdint>

namespace kiln {

enum class Algebra : uint8_t {
  kExact,  // not at all: every result stays, bit for bit
  kXla,    // as XLA does unasked: real numbers give the same up to rounding and to overflow on the way
  kFast,   // also as if no value were NaN, infinite or a negative zero
};

// As headers and manifests have it: "algebra ...".
constexpr const char* Describe(Algebra a) {
  switch (a) {
    case Algebra::kExact:
      return "changes no result";
    case Algebra::kXla:
      return "may change rounding, the sign of a zero and overflow on the way to a result, as XLA's does";
    case Algebra::kFast:
      return "supposes that no value is NaN, infinite or a negative zero";
  }
  return "";
}

}  // namespace kiln
