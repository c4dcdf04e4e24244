#include "compiler/plan/memory_plan.h"

namespace kiln {

absl::StatusOr<MemoryPlan> PlanMemory(const Module& m, const std::function<int64_t(const Instruction*)>& scratch,
                                      const NamedOrder* like) {
  MemoryPlan best;
  for (ResultMemory results : {ResultMemory::kFree, ResultMemory::kBorrowed}) {
    Schedule schedule = ScheduleModule(m, results, like);
    ASSIGN_OR_RETURN(BufferAssignment buffers, BufferAssignment::Run(m, schedule, scratch));
    if (best.schedule.empty() || buffers.temp_bytes() < best.buffers.temp_bytes())
      best = {std::move(schedule), std::move(buffers)};
    if (best.buffers.temp_bytes() == 0 || like) break;
  }
  return best;
}

}  // namespace kiln
