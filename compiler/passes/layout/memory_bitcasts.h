// Bitcasts that say something of memory, as operations on values.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// Bitcasts that are more than reshapes, because a layout is not row major or the element type changes, become what they
// compute: a transpose into the order in memory, a change of type, a reshape, a transpose out of the result's order.
// Then layouts may change. Each is asked for by `take`; true if the module changed.
absl::StatusOr<bool> ExpandMemoryBitcasts(Module& m, const std::function<bool()>& take);

}  // namespace kiln
