// An order and a place for every value, together: the pair that takes least memory.
#pragma once

#include "compiler/plan/buffer_assignment.h"
#include "compiler/plan/schedule.h"

namespace kiln {

struct MemoryPlan {
  Schedule schedule;
  BufferAssignment buffers;
};

struct PlanOptions {
  std::function<int64_t(const Instruction*)> scratch;  // arena bytes that an instruction needs while it runs
  const NamedOrder* like = nullptr;                    // the order to follow, rather than the best one
  int64_t flight_bytes = INT64_MAX;                    // exchanges of so many bytes take place beside the work
  // What the arena may grow for that, and take altogether.
  int64_t more_percent = 0, most_bytes = INT64_MAX;
};

// The module must have passed InsertCopies.
absl::StatusOr<MemoryPlan> PlanMemory(const Module& module, const PlanOptions& options = {});

}  // namespace kiln
