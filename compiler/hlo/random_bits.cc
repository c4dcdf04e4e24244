#include "compiler/hlo/random_bits.h"

#include <algorithm>

namespace kiln {

int64_t ThreefryDimension(const Ints& dims) {
  const auto even = std::find_if(dims.begin(), dims.end(), [](int64_t d) { return d % 2 == 0; });
  return (even != dims.end() ? even : std::max_element(dims.begin(), dims.end())) - dims.begin();
}

}  // namespace kiln
