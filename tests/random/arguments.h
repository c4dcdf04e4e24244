// Arguments for random modules: small integers, as the generator's arithmetic expects.
#pragma once

#include "aot/tools/program.h"

namespace kiln {

inline Values SmallValues(const Module& m, uint64_t seed, int64_t device = 0) {
  Values out = SeededValues(m, seed, device);
  for (Literal& l : out)
    for (int64_t k = 0; k < l.size(); ++k) {
      Element e = l.Get(k);
      e.re = static_cast<double>(static_cast<int>(e.re * 5));
      e.im = static_cast<double>(static_cast<int>(e.im * 5));
      l.Set(k, e);
    }
  return out;
}

}  // namespace kiln
