// An array that a loop stores whole, a part in each iteration, begins with whatever its memory holds.
//
// Programs stack what the steps of a loop give into an array that begins as zeros: those are written to memory, and
// none is read. The fill becomes a fusion that says so, whose kernel does nothing (StartsOverwritten). Left alone:
// arrays that anything but the store reads before the loop ends, and loops that store less than all. Cost: an index's
// expression is evaluated for each iteration, once.
#include <algorithm>

#include "compiler/analysis/overwritten.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/loops/step_arrays.h"

namespace kiln {
namespace {

constexpr int64_t kLeastBytes = 4 << 10;

bool IsFill(const Instruction* i) {
  return i->Is(Opcode::Broadcast) && i->operand(0)->Is(Opcode::Constant) && i->operand(0)->shape().rank() == 0 &&
         !i->shape().HasDynamic() && i->shape().ByteSize() >= kLeastBytes && i->control_predecessors().empty() &&
         i->control_successors().empty();
}

// Whether the array of element `k` is read by its store alone, and what the store gives by the next iteration alone.
bool IsOnlyStored(const Instruction* loop, int64_t k) {
  const Computation* body = *loop->attrs().body;
  const Instruction* store = body->root()->operand(k);
  if (!ElementReaders((*loop->attrs().condition)->parameter(0), k).empty()) return false;
  const std::vector<Instruction*>& given = body->root()->operands();
  if (store->users() != std::vector<Instruction*>{body->root()} || std::count(given.begin(), given.end(), store) != 1)
    return false;
  for (const Instruction* e : ElementReaders(body->parameter(0), k))
    if (e->users() != std::vector<Instruction*>{const_cast<Instruction*>(store)} || e != store->operand(0) ||
        store->operand(1) == e)
      return false;
  return true;
}

Instruction* NoFill(Instruction* fill) {
  Computation* c = fill->parent();
  Instruction* fusion = FuseInto(fill->operand(0), WrapInFusion(c->AddClone(fill, fill->shape(), fill->operands())));
  fusion->mutable_attrs().fusion_kind = FusionKind::kCustom;
  fusion->mutable_attrs().backend_config =
      absl::StrCat("{\"fusion_backend_config\":{\"kind\":\"", kOverwritten, "\"}}");
  return fusion;
}

}  // namespace

absl::StatusOr<bool> CpuWhileInitElision(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      Instruction* init = loop->operand(0);
      if (!HasFlatBodies(loop) || init->users().size() != 1) continue;
      const auto& begins = init->operands();
      if (std::none_of(begins.begin(), begins.end(), IsFill)) continue;
      const std::optional<Induction> count = FindInduction(loop);
      if (!count) continue;
      const StepArrays steps(loop, *count);
      for (int64_t k : steps.filled()) {
        if (!IsFill(init->operand(k)) || !IsOnlyStored(loop, k) || !ctx.Take()) continue;
        init->ReplaceOperand(k, NoFill(init->operand(k)));
        changed = true;
      }
    }
  return changed;
}

}  // namespace kiln
