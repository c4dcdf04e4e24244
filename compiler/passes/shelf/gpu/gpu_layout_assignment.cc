// Layouts for GPU kernels and libraries: row major, but for what cuDNN wants of two-dimensional convolutions - features
// minor (NHWC) in f16 and bf16, where tensor cores read them so, and in the order of their labels otherwise. Copies
// convert.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/other_passes.h"

namespace kiln {
namespace {

bool ConvCall(const Instruction* i) {
  return (IsCallTo(i, kConvForwardTarget) || IsCallTo(i, kConvBiasActivationTarget) ||
          IsCallTo(i, kConvBackwardInputTarget) || IsCallTo(i, kConvBackwardFilterTarget)) &&
         i->attrs().dim_labels;
}

Layout FromMajor(const Ints& major) {
  Layout l;
  l.minor_to_major.assign(major.rbegin(), major.rend());
  return l;
}

// Batch, space, features: outermost first.
Layout FeaturesMinor(int64_t first, const Ints& spatial, int64_t last) {
  Ints major = {first};
  major.insert(major.end(), spatial.begin(), spatial.end());
  major.push_back(last);
  return FromMajor(major);
}

Instruction* InLayout(Instruction* x, const Layout& l) {
  if (x->shape().LayoutOrDefault().minor_to_major == l.minor_to_major) return x;
  Shape s = x->shape();
  s.set_layout(l);
  return x->parent()->Add(Opcode::Copy, s, {x});
}

}  // namespace

absl::StatusOr<bool> GpuLayoutAssignment(Module& m, PassContext& ctx) {
  ASSIGN_OR_RETURN(bool changed, LayoutAssignment(m, ctx));
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!ConvCall(i)) continue;
      const PrimitiveType t = i->operand(0)->shape().type();
      const ConvDimensionNumbers& d = *i->attrs().dim_labels;
      if ((t != PrimitiveType::F16 && t != PrimitiveType::BF16) || d.input_spatial.size() != 2) continue;
      const Layout input = FeaturesMinor(d.input_batch, d.input_spatial, d.input_feature),
                   filter = FeaturesMinor(d.kernel_output, d.kernel_spatial, d.kernel_input),
                   output = FeaturesMinor(d.output_batch, d.output_spatial, d.output_feature);
      Shape result = i->shape();
      const bool fits = i->operand(0)->shape().LayoutOrDefault().minor_to_major == input.minor_to_major &&
                        i->operand(1)->shape().LayoutOrDefault().minor_to_major == filter.minor_to_major &&
                        result.tuple()[0].LayoutOrDefault().minor_to_major == output.minor_to_major;
      if (fits || !ctx.Take()) continue;
      std::vector<Instruction*> operands = i->operands();
      operands[0] = InLayout(operands[0], input);
      operands[1] = InLayout(operands[1], filter);
      if (operands.size() > 3) operands[3] = InLayout(operands[3], output);
      result.mutable_tuple()[0].set_layout(output);
      Instruction* call = c->AddClone(i, result, operands);
      std::vector<Instruction*> parts;
      for (int64_t k = 0; k < 2; ++k) {
        Instruction* e = PartOf(call, k).get();
        parts.push_back(k == 0 ? InLayout(e, i->shape().tuple()[0].LayoutOrDefault()) : e);
      }
      i->ReplaceAllUsesWith(c->Add(Opcode::Tuple, i->shape(), parts));
      c->Remove(i);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
