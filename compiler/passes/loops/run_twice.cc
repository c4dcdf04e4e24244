#include "compiler/passes/loops/run_twice.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {

int64_t KnownTrips(const Instruction* loop) {
  constexpr absl::string_view kKey = "\"known_trip_count\"";
  if (!loop->Is(Opcode::While) || !loop->attrs().backend_config) return 0;
  const absl::string_view text = loop->attrs().backend_config->text;
  const size_t at = text.find(kKey);
  if (at == text.npos) return 0;
  int64_t n = 0;
  const auto field = ConfigField(text.substr(at + kKey.size()), "n");
  return field && absl::SimpleAtoi(*field, &n) ? n : 0;
}

void RunTwiceARound(Instruction* loop, int64_t trips) {
  Computation *c = loop->parent(), *body = *loop->attrs().body;
  if (trips % 2 == 1) {
    Instruction* first = InlineBody(c, body, {loop->operand(0)}, loop);
    loop->ReplaceOperand(0, first);
  }
  Computation* twice = body->module()->CloneComputation(body, "double");
  Instruction* again = InlineBody(twice, body, {twice->root()}, loop);
  twice->set_root(again);
  loop->mutable_attrs().body = twice;
  loop->mutable_attrs().backend_config = absl::StrCat("{\"known_trip_count\":{\"n\":\"", trips / 2, "\"}}");
}

}  // namespace kiln
