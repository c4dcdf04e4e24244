// A callee's instructions put into its caller: what inlining passes share.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Copies the body of `callee` into `into`, its parameters replaced by `arguments`; the copy of its root is returned.
// Instructions without a source location get that of `site`; their names stand in its scope.
Instruction* InlineBody(Computation* into, const Computation* callee, const std::vector<Instruction*>& arguments,
                        const Instruction* site);

}  // namespace kiln
