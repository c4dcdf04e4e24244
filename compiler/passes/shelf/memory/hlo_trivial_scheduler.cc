// An order without optimisation: operands before users, otherwise as written.
#include "compiler/pass/pass.h"
#include "compiler/passes/shelf/memory/install_schedule.h"

namespace kiln {

absl::StatusOr<bool> HloTrivialScheduler(Module& m, PassContext& ctx) {
  if (!ctx.Take()) return false;
  Schedule order;
  for (Computation* c : m.PostOrder()) order[c] = c->PostOrder();
  return InstallSchedule(m, order);
}

}  // namespace kiln
