// Writes what is known of a loop beforehand into its backend_config: how often it runs and which element counts.
#include "absl/strings/str_cat.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

constexpr const char* kKeys[] = {"known_trip_count", "known_init_step", "known_induction_variable"};

// The fields of a config that are about something else, each with a comma in front.
std::string OtherFields(std::string config) {
  for (const std::string key : kKeys) {
    const size_t at = config.find("\"" + key + "\":{");
    if (at == std::string::npos) continue;
    size_t end = config.find('}', at) + 1;
    if (end < config.size() && config[end] == ',') ++end;
    config.erase(at, end - at);
  }
  if (config.size() < 2 || config.front() != '{' || config.back() != '}') return "";
  std::string inside = config.substr(1, config.size() - 2);
  if (!inside.empty() && inside.back() == ',') inside.pop_back();
  return inside.empty() ? "" : "," + inside;
}

}  // namespace

absl::StatusOr<bool> WhileLoopTripCountAnnotator(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (const auto& i : c->instructions()) {
      if (!i->Is(Opcode::While)) continue;
      const std::optional<Induction> v = FindInduction(i.get());
      if (!v) continue;
      const std::string before = i->attrs().backend_config ? i->attrs().backend_config->text : "{}";
      const std::string after =
          absl::StrCat("{\"known_trip_count\":{\"n\":\"", v->trips, "\"},\"known_init_step\":{\"init\":\"", v->init,
                       "\",\"step\":\"", v->step, "\"},\"known_induction_variable\":{\"tuple_index\":\"", v->index,
                       "\"}", OtherFields(before), "}");
      if (after == before || !ctx.Take()) continue;
      i->mutable_attrs().backend_config = after;
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
