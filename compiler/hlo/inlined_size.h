// How large a program becomes once calls are inlined and each loop and branch owns its computation.
//
// Why: calls of calls of calls are exponentially many; this counts them without building one.
// Guarantees: an error at the call that goes beyond Limits::inlined_instructions. A program that is larger as it is
//   written may become twice that.
// Cost: linear in the module.
#pragma once

#include "absl/status/status.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

absl::Status CheckInlinedSize(const Module& module);

}  // namespace kiln
