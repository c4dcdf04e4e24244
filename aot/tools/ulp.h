// Distance of two arrays in units in the last place.
#pragma once

#include <string>

#include "compiler/hlo/literal.h"

namespace kiln {

struct UlpError {
  double ulps = 0;  // infinite where one is NaN or infinite and the other is not
  int64_t element = 0;
  std::string got, want;
};

// Floats: the units of the wanted value, with sums that cancel measured against the array's largest magnitude / 2^20.
// Integers: the difference. Shapes must be compatible.
UlpError LargestUlpError(const Literal& got, const Literal& want);

}  // namespace kiln
