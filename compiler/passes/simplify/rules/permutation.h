// Lists of dimensions.
#pragma once

#include "compiler/hlo/shape.h"

namespace kiln {

inline bool IsIdentity(const Ints& permutation) {
  for (size_t k = 0; k < permutation.size(); ++k)
    if (permutation[k] != static_cast<int64_t>(k)) return false;
  return true;
}

}  // namespace kiln
