// Values that a peak of memory carries along without reading them are computed again behind it, or wait as bits.
//
// The limit is the module's own (frontend attribute max_arena_bytes of its header); without one, or below it, nothing
// happens. Compiles take the limit from their config and may offload too: plan/rematerialize.h is the machinery of
// both.
#include "absl/strings/numbers.h"
#include "compiler/hlo/sharding.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/memory/prepare_for_planning.h"
#include "compiler/plan/rematerialize.h"

namespace kiln {
namespace {

int64_t LimitOf(const Module& m) {
  for (const auto& [key, value] : m.extra_header) {
    if (key != "frontend_attributes") continue;
    const auto text = FrontendAttribute(value, "max_arena_bytes");
    int64_t limit = 0;
    if (text && absl::SimpleAtoi(*text, &limit)) return limit;
  }
  return 0;
}

}  // namespace

absl::StatusOr<bool> Rematerialization(Module& m, PassContext& ctx) {
  RematerializeOptions o;
  o.limit = LimitOf(m);
  if (o.limit <= 0) return false;
  o.prepare = PrepareForPlanning;
  o.take = [&] { return ctx.Take(); };
  ASSIGN_OR_RETURN(RematerializeReport report, Rematerialize(&m, o));
  return !report.steps.empty();
}

}  // namespace kiln
