// A collective in the form of one exchange (compiler/hlo/exchange.h).
#pragma once

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// What takes the place of `collective`, before it: an exchange with what it needs besides, or a gather and ordinary
// operations where it cannot have the form. Null: it has it.
absl::StatusOr<Instruction*> AsExchange(Instruction* collective, const Module& m);

}  // namespace kiln
