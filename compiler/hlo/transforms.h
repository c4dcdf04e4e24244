// Fourier transforms that a GPU's block computes in the memory that its threads share.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// The radices of a transform of `n` elements, in the order of its passes; none for n = 1, and where a prime factor has
// no butterfly.
std::vector<int64_t> RadicesOf(int64_t n);
// How many lines of `n` elements of the component type a block has room for, read and written apart; 0 for lengths
// that have a factor without a butterfly.
int64_t LinesInBlock(int64_t n, PrimitiveType component);
// Whether every axis of transform `i` is one that blocks compute.
bool IsBlockTransform(const Instruction* i);

}  // namespace kiln
