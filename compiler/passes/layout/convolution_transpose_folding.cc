// Folds a transpose of a convolution's kernel into the convolution: its dimension numbers change instead.
//
// Why: CPU kernels copy the kernel into panels anyway and read any order in which the spatial dimensions follow one
//   another. Weights as PyTorch has them (OIHW), and those of gradients, are then moved once and not twice.
// Left alone: constants, whose transpose is done at compile time; depthwise kernels, which are read in place; kernels
//   of few input features, which are small and better multiplied with the taps of a row as one run; and those that
//   would be copied again and again, since panels are made for each slab of the input (gradients of kernels have as
//   many images as features).
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

bool IsDepthwise(const Instruction* convolution) {
  const int64_t groups = convolution->attrs().feature_group_count.value_or(1);
  const ConvDimensionNumbers& d = *convolution->attrs().dim_labels;
  const Shape& kernel = convolution->operand(1)->shape();
  return groups > 1 && kernel.dim(d.kernel_input) == 1 && kernel.dim(d.kernel_output) == groups;
}

bool HasFewFeatures(const Instruction* convolution) {
  constexpr int64_t kShortRun = 16;
  const ConvDimensionNumbers& d = *convolution->attrs().dim_labels;
  const Shape& kernel = convolution->operand(1)->shape();
  const int64_t in = kernel.dim(d.kernel_input), out = kernel.dim(d.kernel_output);
  return in < kShortRun && kernel.ElementCount() > in * out;
}

// How many slabs of the input make panels of the kernel, about.
int64_t Slabs(const Instruction* convolution) {
  constexpr int64_t kSlabBytes = 512 << 10;
  const Shape& input = convolution->operand(0)->shape();
  const int64_t images = input.dim(convolution->attrs().dim_labels->input_batch);
  return images == 0 ? 0 : images * ((input.ByteSize() / images + kSlabBytes - 1) / kSlabBytes);
}

// The dimension numbers over the operand of the transpose; nullopt where no kernel reads that order.
std::optional<ConvDimensionNumbers> Folded(const Instruction* convolution) {
  constexpr int64_t kMostSlabs = 2;
  const Instruction* t = convolution->operand(1);
  if (!t->Is(Opcode::Transpose) || t->operand(0)->Is(Opcode::Constant) || IsDepthwise(convolution) ||
      HasFewFeatures(convolution) || Slabs(convolution) > kMostSlabs)
    return std::nullopt;
  const Ints& p = *t->attrs().dimensions;
  ConvDimensionNumbers d = *convolution->attrs().dim_labels;
  d.kernel_input = p[d.kernel_input];
  d.kernel_output = p[d.kernel_output];
  for (size_t k = 0; k < d.kernel_spatial.size(); ++k) {
    d.kernel_spatial[k] = p[d.kernel_spatial[k]];
    if (d.kernel_spatial[k] != d.kernel_spatial[0] + static_cast<int64_t>(k)) return std::nullopt;
  }
  return d;
}

}  // namespace

absl::StatusOr<bool> ConvolutionTransposeFolding(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Convolution)) continue;
      while (const auto folded = Folded(i)) {
        if (!ctx.Take()) return changed;
        Instruction* const t = i->operand(1);
        i->mutable_attrs().dim_labels = *folded;
        i->ReplaceOperand(1, t->operand(0));
        if (t->users().empty() && !t->IsRoot() && t->control_successors().empty()) c->Remove(t);
        changed = true;
      }
    }
  return changed;
}

}  // namespace kiln
