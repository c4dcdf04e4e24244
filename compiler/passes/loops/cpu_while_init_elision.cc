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
#include "compiler/passes/loops/stored_whole.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

constexpr int64_t kLeastBytes = 4 << 10;

bool IsFill(const Instruction* i) {
  return i->Is(Opcode::Broadcast) && i->operand(0)->Is(Opcode::Constant) && i->operand(0)->shape().rank() == 0 &&
         !i->shape().HasDynamic() && i->shape().ByteSize() >= kLeastBytes && i->control_predecessors().empty() &&
         i->control_successors().empty();
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
      for (int64_t k : ElementsStoredWhole(loop)) {
        if (!IsFill(init->operand(k)) || !ctx.Take()) continue;
        init->ReplaceOperand(k, NoFill(init->operand(k)));
        changed = true;
      }
    }
  return changed;
}

}  // namespace kiln
