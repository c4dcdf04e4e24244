// Copy insertion: makes in-place storage safe.
//
// What: after it, a value that a loop, an update or an output aliasing overwrites is never read afterwards. Where order
//   alone can achieve that, control dependencies are added; otherwise a copy.
// Guarantees: a loop that swaps two values is right for every trip count; a counter needs no copy; parameters that were
//   not donated and constants are never written.
#pragma once

#include "absl/status/status.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

absl::Status InsertCopies(Module& module);

}  // namespace kiln
