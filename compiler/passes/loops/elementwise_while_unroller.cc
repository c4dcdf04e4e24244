// Loops of a few iterations over elementwise work become their bodies, one behind the other: what was a pass over
// memory and a kernel for each iteration is one loop, and the state that the iterations exchange are names.
//
// The rounds of JAX's threefry are such a loop. Whatever computes an element from many (a sum, a product, an update)
// would be a kernel of its own in every copy of the body, so loops with one stay. On CPUs a pass over a cache costs
// less than what two readers of the rounds compute twice, so no loop is unrolled there.
#include <algorithm>

#include "compiler/passes/loops/unroll.h"

namespace kiln {
namespace {

constexpr int64_t kMostTrips = 8, kMostInstructions = 400;  // of the bodies together

bool JoinsLoops(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::Iota:
    case Opcode::Reshape:
    case Opcode::Slice:
      return true;
    default:
      return i->IsElementwise();
  }
}

}  // namespace

absl::StatusOr<bool> ElementwiseWhileUnroller(Module& m, PassContext& ctx) {
  return UnrollLoops(m, ctx, [&](const Instruction* loop, int64_t iterations) {
    const Computation* body = *loop->attrs().body;
    return iterations <= kMostTrips && body->instruction_count() * iterations <= kMostInstructions &&
           std::all_of(body->instructions().begin(), body->instructions().end(),
                       [](const auto& i) { return JoinsLoops(i.get()); });
  });
}

}  // namespace kiln
