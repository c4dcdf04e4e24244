// Numbers modulo two primes, in which identities of rational functions and exponentials are tested.
//
// What: a number's residues, and e to the power of it. Two rational functions of variables whose residues are chosen
//   beforehand agree there if they are the same, and otherwise but for a chance of about 2^-50: a polynomial has no
//   more roots than its degree among 2^60 residues. kBase is of the order kSmall modulo kLarge, so that x -> kBase^x
//   turns sums modulo one into products modulo the other, as the exponential function does.
#pragma once

#include <cstdint>

namespace kiln::residue {

constexpr uint64_t kSmall = 0xfffffffffffff53, kLarge = 0x5ffffffffffffbf3, kBase = 64;

uint64_t Add(uint64_t a, uint64_t b, uint64_t prime);
uint64_t Subtract(uint64_t a, uint64_t b, uint64_t prime);
uint64_t Multiply(uint64_t a, uint64_t b, uint64_t prime);
uint64_t Power(uint64_t a, uint64_t exponent, uint64_t prime);
uint64_t Inverse(uint64_t a, uint64_t prime);  // of a residue that is not 0
uint64_t OfDouble(double x, uint64_t prime);   // of a finite number, which is a fraction over a power of two
uint64_t Mixed(uint64_t a, uint64_t b);        // modulo kLarge; the same for the same numbers

}  // namespace kiln::residue
