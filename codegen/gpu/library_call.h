// Custom calls that stand for library routines, as the runtime takes them.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln::gpu {

// A routine of runtime_min/gpu/routines.def with its numbers.
struct RoutineCall {
  int64_t routine;
  std::vector<int64_t> numbers;
};

// How many algorithms of the library are tried for a call: those that it names first, best first.
int64_t LibraryCandidates(const Instruction* call);

// Fails for a target, type or form that the runtime has no routine for.
absl::StatusOr<RoutineCall> RoutineOf(const Instruction* call);

}  // namespace kiln::gpu
