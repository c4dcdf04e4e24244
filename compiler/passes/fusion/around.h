// Loops around an operation with a kernel of its own that computes what it reads, or goes on with what it writes.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// More operands than a kernel takes are not worth joining for.
inline constexpr int64_t kMostKernelOperands = 96;

// A loop of one array in row-major order that stands free and computes each element by itself.
bool IsElementalLoop(const Instruction* i);

// A loop that makes each of its elements of the same element of `center`.
bool IsLoopBehind(const Instruction* i, const Instruction* center);

}  // namespace kiln
