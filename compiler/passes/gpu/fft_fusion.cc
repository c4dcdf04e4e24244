// Loops before and after a transform that blocks compute join its kernel: its first axis computes the elements that it
// loads, its last goes on with those that it stores.
//
// Before: a loop that the transform alone reads; of half spectra, which a line reads from both ends, none. After: an
// elementwise loop that alone reads the transform. Last of the fusions: the others take one for what its root is.
#include "compiler/hlo/of_opcode.h"
#include "compiler/hlo/transforms.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/around.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

// A loop that computes each element that the transform reads, once.
bool MayJoinBefore(const Instruction* i, const Instruction* fft) {
  return IsElementalLoop(i) && i->users().size() == 1 && *fft->attrs().fft_type != FftType::IRFFT;
}

bool IsFree(const Instruction* fft) {
  return IsBlockTransform(fft) && fft->shape().HasDefaultLayout() && fft->operand(0)->shape().HasDefaultLayout() &&
         fft->control_predecessors().empty() && fft->control_successors().empty();
}

}  // namespace

absl::StatusOr<bool> FftFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* fft : OfOpcode(c, Opcode::Fft)) {
      if (!IsFree(fft)) continue;
      Instruction *before = fft->operand(0), *behind = fft->users().size() == 1 ? fft->users()[0] : nullptr;
      if (!MayJoinBefore(before, fft)) before = nullptr;
      if (!behind || fft->IsRoot() || !IsLoopBehind(behind, fft)) behind = nullptr;
      const int64_t operands = (before ? before->operand_count() : 1) + (behind ? behind->operand_count() : 0);
      if ((!before && !behind) || operands > kMostKernelOperands || !ctx.Take()) continue;
      Instruction* fusion = behind ? FuseInto(fft, behind) : WrapInFusion(fft);
      if (behind) c->Remove(fft);
      if (before) {
        FuseInto(before, fusion);
        c->Remove(before);
      }
      fusion->mutable_attrs().fusion_kind = FusionKind::kCustom;
      fusion->mutable_attrs().backend_config = "{\"fusion_backend_config\":{\"kind\":\"fft\"}}";
      changed = true;
    }
  return changed;
}

}  // namespace kiln
