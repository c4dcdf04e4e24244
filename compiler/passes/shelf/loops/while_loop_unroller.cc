// Loops of a known, small number of iterations become their bodies, one behind the other.
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

constexpr int64_t kMostTrips = 64, kMostInstructions = 800;

// The number of iterations; 0: the loop stays.
int64_t TripsToUnroll(const Instruction* loop, PureComputations* pure) {
  if (!loop->operand(0)->Is(Opcode::Tuple) || !loop->control_predecessors().empty() ||
      !loop->control_successors().empty() || !pure->Contains(*loop->attrs().body) ||
      !pure->Contains(*loop->attrs().condition))
    return 0;
  const std::optional<Induction> v = FindInduction(loop);
  const int64_t instructions = (*loop->attrs().body)->instruction_count();
  return v && v->trips >= 1 && v->trips <= kMostTrips && instructions <= kMostInstructions ? v->trips : 0;
}

}  // namespace

absl::StatusOr<bool> WhileLoopUnroller(Module& m, PassContext& ctx) {
  bool changed = false;
  PureComputations pure;
  // Inner loops first: a body is copied once its own loops are gone.
  for (Computation* c : m.PostOrder())
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      const int64_t trips = TripsToUnroll(loop, &pure);
      if (trips == 0 || !ctx.Take()) continue;
      Instruction* state = loop->operand(0);
      for (int64_t k = 0; k < trips; ++k) state = InlineBody(c, *loop->attrs().body, {state}, loop);
      loop->ReplaceAllUsesWith(state);
      c->Remove(loop);
      changed = true;
    }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
