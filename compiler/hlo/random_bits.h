// What rng-bit-generator's algorithms leave to an implementation, as XLA has it.
#pragma once

#include "compiler/hlo/shape.h"

namespace kiln {

// The dimension along which threefry halves an array: the first even one, else the largest. `dims` is not empty. The
// two words of a block go to the same place of both halves.
int64_t ThreefryDimension(const Ints& dims);

}  // namespace kiln
