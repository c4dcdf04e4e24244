// A loop of known length runs its body twice in each round, so that what one half starts the other can wait for. An odd
// iteration goes before the loop.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

constexpr int64_t kMostInstructions = 2000;

int64_t Trips(const Instruction* loop) {
  if (!loop->Is(Opcode::While) || !loop->attrs().backend_config) return 0;
  const absl::string_view text = loop->attrs().backend_config->text;
  const size_t at = text.find("\"known_trip_count\"");
  int64_t n = 0;
  if (at == text.npos) return 0;
  const auto field = ConfigField(text.substr(at + 18), "n");
  return field && absl::SimpleAtoi(*field, &n) ? n : 0;
}

}  // namespace

absl::StatusOr<bool> LoopDoubleBufferTransformer(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Instruction*> loops;
  for (Computation* c : m.PostOrder())
    for (Instruction* i : c->PostOrder())
      if (Trips(i) >= 2 && !i->attrs().frontend_attributes &&
          (*i->attrs().body)->instruction_count() <= kMostInstructions)
        loops.push_back(i);
  for (Instruction* loop : loops) {
    if (!ctx.Take()) continue;
    const int64_t trips = Trips(loop);
    Computation *c = loop->parent(), *body = *loop->attrs().body;
    if (trips % 2 == 1) {
      Instruction* first = InlineBody(c, body, {loop->operand(0)}, loop);
      loop->ReplaceOperand(0, first);
    }
    Computation* twice = m.CloneComputation(body, "double");
    Instruction* again = InlineBody(twice, body, {twice->root()}, loop);
    twice->set_root(again);
    loop->mutable_attrs().body = twice;
    loop->mutable_attrs().backend_config = absl::StrCat("{\"known_trip_count\":{\"n\":\"", trips / 2, "\"}}");
    loop->mutable_attrs().frontend_attributes = "{is_double_buffered_loop=\"true\"}";
    changed = true;
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
