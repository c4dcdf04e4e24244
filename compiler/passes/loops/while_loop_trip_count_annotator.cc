// Writes what is known of a loop beforehand into its backend_config: how often it runs and which element counts. What
// the counter is behind the loop is a constant.
#include "absl/strings/str_cat.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/trip_search.h"
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

// What is known of the loop, as fields; empty if nothing is.
std::string KnownFields(const Instruction* loop, const std::optional<Induction>& v) {
  constexpr int64_t kMostTried = 128;  // iterations
  std::string fields;
  const int64_t index = v ? v->index : DecidingElement(loop);
  if (v) {
    fields = absl::StrCat("\"known_trip_count\":{\"n\":\"", v->trips, "\"},\"known_init_step\":{\"init\":\"", v->init,
                          "\",\"step\":\"", v->step, "\"}");
  } else if (const auto trips = CountTrips(loop, kMostTried)) {
    fields = absl::StrCat("\"known_trip_count\":{\"n\":\"", *trips, "\"}");
  }
  if (index < 0) return fields;
  return absl::StrCat(fields, fields.empty() ? "" : ",", "\"known_induction_variable\":{\"tuple_index\":\"", index,
                      "\"}");
}

// Whoever reads the counter of the loop that has run reads its last value.
bool ReadLastValue(Instruction* loop, const Induction& v) {
  bool changed = false;
  for (Instruction* e : ElementReaders(loop, v.index)) {
    if (e->users().empty() && !e->IsRoot()) continue;
    Computation* c = loop->parent();
    e->ReplaceAllUsesWith(IntegerIn(c, e->shape().type(), WrapInt(e->shape().type(), v.init + v.step * v.trips)).get());
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> WhileLoopTripCountAnnotator(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : OfOpcode(c.get(), Opcode::While)) {
      const std::optional<Induction> v = FindInduction(i);
      const std::string known = KnownFields(i, v);
      if (known.empty()) continue;
      const std::string before = i->attrs().backend_config ? i->attrs().backend_config->text : "{}";
      const std::string after = absl::StrCat("{", known, OtherFields(before), "}");
      if (ctx.fuel == 0) continue;
      bool did = v && ReadLastValue(i, *v);
      if (after != before) {
        i->mutable_attrs().backend_config = after;
        did = true;
      }
      if (did) ctx.Take();
      changed |= did;
    }
  }
  return changed;
}

}  // namespace kiln
