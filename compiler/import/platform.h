// Programs that jax.export makes for several platforms: an argument of theirs is the number, in the list of platforms,
// of the one that they run on.
#pragma once

#include <cstdint>

#include "compiler/import/mlir.h"

namespace kiln {

// The argument of each public function becomes a constant.
void SettlePlatform(mlir::Program* program, int64_t platform);

}  // namespace kiln
