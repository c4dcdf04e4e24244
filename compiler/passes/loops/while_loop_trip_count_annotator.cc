// Writes what is known of a loop beforehand into its backend_config: how often it runs and which element counts.
#include "absl/strings/str_cat.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {

absl::StatusOr<bool> WhileLoopTripCountAnnotator(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (const auto& i : c->instructions()) {
      if (!i->Is(Opcode::While) || (i->attrs().backend_config && *i->attrs().backend_config != "{}")) continue;
      const std::optional<Induction> v = FindInduction(i.get());
      if (!v || !ctx.Take()) continue;
      i->mutable_attrs().backend_config = absl::StrCat(
          "{\"known_trip_count\":{\"n\":\"", v->trips, "\"},\"known_init_step\":{\"init\":\"", v->init,
          "\",\"step\":\"", v->step, "\"},\"known_induction_variable\":{\"tuple_index\":\"", v->index, "\"}}");
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
