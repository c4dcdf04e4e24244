#include "compiler/plan/memory_plan.h"

#include <algorithm>

namespace kiln {
namespace {

// The plan with exchanges beside the work, as far as the arena may grow for it.
absl::Status LetExchangesFly(const Module& m, const PlanOptions& o, MemoryPlan* plan) {
  const int64_t least = plan->buffers.temp_bytes();
  const int64_t most = std::min(o.most_bytes, least + least / 100 * o.more_percent);
  MemoryPlan late{plan->schedule, {}};
  for (auto& [c, order] : late.schedule) order = SmallResultsLate(order, o.flight_bytes);
  if (late.schedule != plan->schedule) {
    ASSIGN_OR_RETURN(late.buffers, BufferAssignment::Run(m, late.schedule, o.scratch));
    if (late.buffers.temp_bytes() <= most) *plan = std::move(late);
  }
  if (FlightsOf(plan->schedule, o.flight_bytes).empty()) return absl::OkStatus();
  for (const auto& [ahead, behind] : {std::pair(true, true), {true, false}, {false, true}, {false, false}}) {
    MemoryPlan next{plan->schedule, {}};
    for (auto& [c, order] : next.schedule) order = InFlight(order, {o.flight_bytes, ahead, behind});
    ASSIGN_OR_RETURN(next.buffers,
                     BufferAssignment::Run(m, next.schedule, o.scratch, FlightsOf(next.schedule, o.flight_bytes)));
    if (next.buffers.temp_bytes() > most) continue;
    *plan = std::move(next);
    break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(const Module& m, const PlanOptions& o) {
  MemoryPlan best;
  for (ResultMemory results : {ResultMemory::kFree, ResultMemory::kBorrowed}) {
    Schedule schedule = ScheduleModule(m, results, o.like);
    ASSIGN_OR_RETURN(BufferAssignment buffers, BufferAssignment::Run(m, schedule, o.scratch));
    if (best.schedule.empty() || buffers.temp_bytes() < best.buffers.temp_bytes())
      best = {std::move(schedule), std::move(buffers)};
    if (best.buffers.temp_bytes() == 0 || o.like) break;
  }
  if (!o.like && o.flight_bytes < INT64_MAX) RETURN_IF_ERROR(LetExchangesFly(m, o, &best));
  return best;
}

}  // namespace kiln
