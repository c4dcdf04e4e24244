// Quotients of integers by way of floats: vectors have no division of integers, and one of f64 takes a vector of eight
// less than three scalar divisions.
//
// Guarantees: the quotient of integers, cut towards zero, for every dividend and every divisor but 0 (and -1 of the
// least signed number). Needs no mode of rounding but to nearest.
// Cost: up to 32 bits a division and its conversions; 64 bits a division, two products and two conversions more.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace kiln {

// p / q of integers of at most 64 bits.
llvm::Value* QuotientByFloats(llvm::IRBuilder<>& b, llvm::Value* p, llvm::Value* q, bool has_sign);

}  // namespace kiln
