#include "compiler/passes/loops/run_twice.h"

#include "absl/strings/str_cat.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {

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
