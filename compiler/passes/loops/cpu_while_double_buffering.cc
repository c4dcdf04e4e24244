// A round of a loop becomes two where its state could not be made in place.
//
// A step may read neighbours of the elements that it writes, or hand one array of the state on as another. What it
// gives cannot lie where the old arrays do, so that each round would copy it there. The second step of a double round
// writes where the first has read: nothing is copied. Loops whose number of iterations is known, over small bodies
// without loops or branches of their own.
//
// Cost: linear in the bodies of loops.
#include "compiler/hlo/of_opcode.h"
#include "compiler/hlo/trip_count.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/run_twice.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/plan/alias.h"

namespace kiln {
namespace {

constexpr int64_t kLeastTrips = 4, kMostInstructions = 100, kLeastBytes = 16 << 10;

bool IsElement(const Instruction* i, const Instruction* state, int64_t k) {
  return i->Is(Opcode::GetTupleElement) && i->operand(0) == state && *i->attrs().tuple_index == k;
}

// Whether element `k` of the state would be copied in each round.
bool IsCopied(const Computation* body, int64_t k) {
  const Instruction *state = body->parameter(0), *next = body->root()->operand(k);
  if (!next->shape().IsArray() || next->shape().ByteSize() < kLeastBytes) return false;
  if (next->Is(Opcode::GetTupleElement) && next->operand(0) == state) return *next->attrs().tuple_index != k;
  const Instruction* maker = next->Is(Opcode::GetTupleElement) ? next->operand(0) : next;
  if (!maker->Is(Opcode::Fusion) || maker->attrs().fusion_kind != FusionKind::kLoop || UpdatesInPlace(maker))
    return false;
  for (int64_t o = 0; o < maker->operand_count(); ++o)
    if (IsElement(maker->operand(o), state, k) && !ReadsAtOwnElement(maker, o)) return true;
  return false;
}

bool Gains(const Computation* body) {
  if (body->instruction_count() > kMostInstructions) return false;
  for (const auto& i : body->instructions())
    if (i->Is(Opcode::While) || i->Is(Opcode::Conditional) || i->Is(Opcode::Call)) return false;
  for (int64_t k = 0; k < body->root()->operand_count(); ++k)
    if (IsCopied(body, k)) return true;
  return false;
}

}  // namespace

absl::StatusOr<bool> CpuWhileDoubleBuffering(Module& m, PassContext& ctx) {
  bool changed = false;
  PureComputations pure;
  for (Computation* c : m.PostOrder())
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      const int64_t trips = KnownTripCount(loop).value_or(0);
      if (trips < kLeastTrips || !HasFlatBodies(loop) || !pure.Contains(*loop->attrs().body) ||
          !Gains(*loop->attrs().body) || !ctx.Take())
        continue;
      RunTwiceARound(loop, trips);
      changed = true;
    }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
