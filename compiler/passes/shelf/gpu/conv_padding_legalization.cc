// cuDNN pads both sides of a dimension alike and by no negative amount, and puts no holes between the elements of an
// input: what a forward convolution, or a call for one, asks beyond that happens to its input, by a pad or a slice.
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool Forward(const Instruction* i) {
  return i->Is(Opcode::Convolution) || IsCallTo(i, kConvForwardTarget) || IsCallTo(i, kConvBiasActivationTarget);
}

bool ConvCall(const Instruction* i) {
  return Forward(i) || IsCallTo(i, kConvBackwardInputTarget) || IsCallTo(i, kConvBackwardFilterTarget);
}

bool Symmetric(const WindowDim& w) { return w.pad_low == w.pad_high && w.pad_low >= 0; }

bool Legal(const WindowDim& w, bool forward) { return Symmetric(w) && (!forward || w.lhs_dilate == 1); }

}  // namespace

absl::StatusOr<bool> ConvPaddingLegalization(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        if (!ConvCall(i) || !i->attrs().window || !i->attrs().dim_labels) return false;
        if (i->operand(0)->shape().ElementCount() == 0 || i->operand(0)->shape().HasDynamic()) return false;
        bool legal = true;
        for (const WindowDim& w : *i->attrs().window) {
          // The dilated operand of a backward call is none that a pad could extend.
          if (!Forward(i) && !Symmetric(w) && w.lhs_dilate > 1) return false;
          legal = legal && Legal(w, Forward(i));
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
          if (Legal(w, Forward(i))) continue;
          // What both sides share stays with the call.
          const int64_t common = std::max<int64_t>(0, std::min(w.pad_low, w.pad_high));
          const auto dim = static_cast<size_t>(d.input_spatial[k]);
          amounts[dim].low = w.pad_low - common;
          amounts[dim].high = w.pad_high - common;
          amounts[dim].interior = Forward(i) ? w.lhs_dilate - 1 : 0;
          padded.mutable_dims()[dim] +=
              amounts[dim].low + amounts[dim].high + (padded.dims()[dim] - 1) * amounts[dim].interior;
          w.pad_low = w.pad_high = common;
          if (Forward(i)) w.lhs_dilate = 1;
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
