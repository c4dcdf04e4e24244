#include "compiler/sharding/residue.h"

#include <cmath>

namespace kiln::residue {

uint64_t Add(uint64_t a, uint64_t b, uint64_t prime) { return (a + b) % prime; }

uint64_t Subtract(uint64_t a, uint64_t b, uint64_t prime) { return (a + (prime - b)) % prime; }

uint64_t Multiply(uint64_t a, uint64_t b, uint64_t prime) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % prime);
}

uint64_t Power(uint64_t a, uint64_t exponent, uint64_t prime) {
  uint64_t out = 1;
  for (; exponent; exponent >>= 1, a = Multiply(a, a, prime))
    if (exponent & 1) out = Multiply(out, a, prime);
  return out;
}

uint64_t Inverse(uint64_t a, uint64_t prime) { return Power(a, prime - 2, prime); }

uint64_t OfDouble(double x, uint64_t prime) {
  int exponent = 0;
  const double mantissa = std::frexp(std::abs(x), &exponent);
  exponent -= 53;
  const auto whole = static_cast<uint64_t>(std::ldexp(mantissa, 53));
  const uint64_t two = Power(2, static_cast<uint64_t>(std::abs(exponent)), prime);
  const uint64_t size = Multiply(whole % prime, exponent < 0 ? Inverse(two, prime) : two, prime);
  return x < 0 ? Subtract(0, size, prime) : size;
}

uint64_t Mixed(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15 * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return (x ^ (x >> 31)) % kLarge;
}

}  // namespace kiln::residue
