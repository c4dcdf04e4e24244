// The order with the smallest peak of live bytes among list, depth-first and post-order (compiler/plan/schedule.h).
#include "compiler/pass/pass.h"
#include "compiler/passes/shelf/memory/install_schedule.h"

namespace kiln {

absl::StatusOr<bool> HloMemoryScheduler(Module& m, PassContext& ctx) {
  if (!ctx.Take()) return false;
  return InstallSchedule(m, ScheduleModule(m));
}

}  // namespace kiln
