// Loops of a known, small number of iterations become their bodies, one behind the other.
#include "compiler/passes/loops/unroll.h"

namespace kiln {

absl::StatusOr<bool> WhileLoopUnroller(Module& m, PassContext& ctx) {
  constexpr int64_t kMostTrips = 64, kMostInstructions = 800;
  return UnrollLoops(m, ctx, [](const Instruction* loop, int64_t iterations) {
    return iterations <= kMostTrips && (*loop->attrs().body)->instruction_count() <= kMostInstructions;
  });
}

}  // namespace kiln
