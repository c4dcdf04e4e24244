// f16 as doubles, which hold each of them and, of two, the exact sum and product.
#pragma once

#include <cstdint>

namespace kiln::x86 {

// NaNs keep their payload, and are quiet when they come back.
double FromHalf(uint64_t bits);
// Rounds to nearest, ties to even.
uint64_t ToHalf(double x);

// a * b + c of three f16, as a double whose rounding to f16 is that of the exact value.
double MultiplyAdd(double a, double b, double c);

}  // namespace kiln::x86
