// Any collective as a gather of the arrays of all members, and ordinary operations on what was gathered.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// What takes the place of `collective`, before it.
absl::StatusOr<Instruction*> AsGather(Instruction* collective, const Module& m);

// Whether `i` is the gather that AsGather makes: equal blocks along a first dimension of one row each.
bool IsPlainGather(const Instruction* i, const Module& m);

}  // namespace kiln
