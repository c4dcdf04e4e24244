// How often a loop runs, where that is written beside it.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/hlo/instruction.h"

namespace kiln {

// The known_trip_count of a loop's backend_config: what while-loop-trip-count-annotator found, or else what the
// imported program says, which is believed. Nothing if `i` is no loop or has none.
std::optional<int64_t> KnownTripCount(const Instruction* i);

}  // namespace kiln
