// Arrays as they lie in memory.
//
// What: an array with a layout is, byte for byte, a row-major array whose extents are listed from the slowest dimension
//   to the fastest: its physical shape. Passes that remove layouts, and whoever has to know what a bitcast says, speak
//   of that shape.
// Cost: linear in the rank.
#pragma once

#include "compiler/hlo/shape.h"

namespace kiln {

// Dimensions of `s` from the slowest to the fastest in memory.
Ints MajorToMinor(const Shape& s);

// What undoes a permutation.
Ints InversePermutation(const Ints& permutation);

// The row-major array that occupies the same memory as `s`; what else its layout says (tiles, memory space) stays.
Shape PhysicalShape(const Shape& s);

// Whether the same dimensions vary in the same order.
bool SameOrderInMemory(const Shape& a, const Shape& b);

// Whether a reshape of `from` to `to` moves no element in memory. Not said of arrays without elements.
bool ReshapeKeepsMemory(const Shape& from, const Shape& to);

}  // namespace kiln
