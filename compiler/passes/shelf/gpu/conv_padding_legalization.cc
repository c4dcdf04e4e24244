// cuDNN pads both sides of a dimension alike and by no negative amount: what a call asks beyond that happens to its
// input, by a pad or a slice.
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool ConvCall(const Instruction* i) {
  return IsCallTo(i, kConvForwardTarget) || IsCallTo(i, kConvBiasActivationTarget) ||
         IsCallTo(i, kConvBackwardInputTarget) || IsCallTo(i, kConvBackwardFilterTarget);
}

bool Legal(const WindowDim& w) { return w.pad_low == w.pad_high && w.pad_low >= 0; }

}  // namespace

absl::StatusOr<bool> ConvPaddingLegalization(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        if (!ConvCall(i) || !i->attrs().window || !i->attrs().dim_labels) return false;
        bool legal = true;
        for (const WindowDim& w : *i->attrs().window) {
          if (!Legal(w) && w.lhs_dilate > 1) return false;  // the dilated input is none that a pad could extend
          legal = legal && Legal(w);
        }
        return !legal;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        Instruction* x = i->operand(0);
        attr::Win window = *i->attrs().window;
        const ConvDimensionNumbers& d = *i->attrs().dim_labels;
        attr::Padding amounts(static_cast<size_t>(x->shape().rank()));
        Shape padded = x->shape();
        for (size_t k = 0; k < window.size(); ++k) {
          WindowDim& w = window[k];
          if (Legal(w)) continue;
          // What both sides share stays with the call.
          const int64_t common = std::max<int64_t>(0, std::min(w.pad_low, w.pad_high));
          const auto dim = static_cast<size_t>(d.input_spatial[k]);
          amounts[dim].low = w.pad_low - common;
          amounts[dim].high = w.pad_high - common;
          padded.mutable_dims()[dim] += amounts[dim].low + amounts[dim].high;
          w.pad_low = w.pad_high = common;
        }
        Instruction* zero = c->AddConstant(Literal::Of(x->shape().type(), 0));
        Instruction* pad = c->Add(Opcode::Pad, padded, {x, zero});
        pad->mutable_attrs().padding = amounts;
        std::vector<Instruction*> operands = i->operands();
        operands[0] = pad;
        Instruction* call = c->AddClone(i, i->shape(), operands);
        call->mutable_attrs().window = window;
        return call;
      });
}

}  // namespace kiln
