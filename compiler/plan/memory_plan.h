// An order and a place for every value, together: the pair that takes least memory.
#pragma once

#include "compiler/plan/buffer_assignment.h"
#include "compiler/plan/schedule.h"

namespace kiln {

struct MemoryPlan {
  Schedule schedule;
  BufferAssignment buffers;
};

// The module must have passed InsertCopies. `scratch`: arena bytes that an instruction needs while it runs. `like`: the
// order to follow, rather than the best one.
absl::StatusOr<MemoryPlan> PlanMemory(const Module& module,
                                      const std::function<int64_t(const Instruction*)>& scratch = nullptr,
                                      const NamedOrder* like = nullptr);

}  // namespace kiln
