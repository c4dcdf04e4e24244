// Forgets the order of a scheduled module.
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> HloDescheduler(Module& m, PassContext& ctx) {
  if (!m.is_scheduled || !ctx.Take()) return false;
  m.is_scheduled = false;
  return true;
}

}  // namespace kiln
