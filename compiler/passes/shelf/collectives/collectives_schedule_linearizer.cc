// Collectives of a computation run in one order on all devices: each waits for the one before, so that no two devices
// can wait for each other in different ones.
#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> CollectivesScheduleLinearizer(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    Instruction* before = nullptr;
    for (Instruction* i : c->PostOrder()) {
      if (!i->HasTrait(Collective)) continue;
      if (before) {
        const Reachability reach(c.get());
        if (!reach.Reaches(before, i) && ctx.Take()) {
          before->AddControlDependencyTo(i);
          changed = true;
        }
      }
      before = i;
    }
  }
  return changed;
}

}  // namespace kiln
