// A loop of known length runs its body twice in each round, so that what one half starts the other can wait for. An odd
// iteration goes before the loop.
#include "compiler/hlo/trip_count.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/run_twice.h"

namespace kiln {

absl::StatusOr<bool> LoopDoubleBufferTransformer(Module& m, PassContext& ctx) {
  constexpr int64_t kMostInstructions = 2000;
  bool changed = false;
  std::vector<Instruction*> loops;
  for (Computation* c : m.PostOrder())
    for (Instruction* i : c->PostOrder())
      if (KnownTripCount(i).value_or(0) >= 2 && !i->attrs().frontend_attributes &&
          (*i->attrs().body)->instruction_count() <= kMostInstructions)
        loops.push_back(i);
  for (Instruction* loop : loops) {
    if (!ctx.Take()) continue;
    RunTwiceARound(loop, *KnownTripCount(loop));
    loop->mutable_attrs().frontend_attributes = "{is_double_buffered_loop=\"true\"}";
    changed = true;
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
