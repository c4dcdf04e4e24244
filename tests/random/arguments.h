// Arguments for random modules: small integers, as the generator's arithmetic expects.
#pragma once

#include <vector>

#include "aot/tools/runner.h"

namespace kiln {

inline std::vector<Literal> SmallArguments(const Module& m, uint64_t seed) {
  std::vector<Literal> out = SeededArguments(m, seed);
  for (Literal& l : out)
    for (int64_t k = 0; k < l.size(); ++k) {
      Element e = l.Get(k);
      e.re = static_cast<double>(static_cast<int>(e.re * 5));
      l.Set(k, e);
    }
  return out;
}

}  // namespace kiln
