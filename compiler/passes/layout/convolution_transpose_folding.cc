// Folds a transpose of a convolution's input or kernel into the convolution: its dimension numbers change instead.
//
// Why: CPU kernels copy the kernel into panels anyway and read any order in which the spatial dimensions follow one
//   another. Weights as PyTorch has them (OIHW), and those of gradients, are then moved once and not twice. Kernels
//   copy the input too, piece by piece, and turn it on the way: channels-first programs need no other copy of theirs.
// Left alone: constants, whose transpose is done at compile time. Depthwise convolutions and others by plain loops,
//   which read their operands in place. Kernels of few input features, which are small and better multiplied with the
//   taps of a row as one run; and those that would be copied again and again, since panels are made for each slab of
//   the input (gradients of kernels have as many images as features). Inputs whose innermost dimension is neither the
//   features nor the last spatial one, of which a slab would read one element of each cache line; and those whose
//   transpose something else needs too.
#include <algorithm>

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

bool IsTransposeOfValue(const Instruction* i) {
  return i->Is(Opcode::Transpose) && !i->operand(0)->Is(Opcode::Constant);
}

// The dimension numbers over the operand of the kernel's transpose; nullopt where no kernel reads that order.
std::optional<ConvDimensionNumbers> WithKernelFolded(const Instruction* convolution) {
  constexpr int64_t kMostSlabs = 2;
  const Instruction* t = convolution->operand(1);
  if (!IsTransposeOfValue(t) || IsDepthwise(convolution) || HasFewFeatures(convolution) ||
      Slabs(convolution) > kMostSlabs)
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

// Whether products compute it, of a copy of its input: not plain loops.
bool CopiesInput(const Instruction* convolution) {
  // Sums that are rounded to the result's type at their end are held in registers, up to this many products.
  constexpr int64_t kLongestRoundedSum = 2048;
  const PrimitiveType result = convolution->shape().type();
  const bool rounded = result == PrimitiveType::BF16 || result == PrimitiveType::F16;
  const attr::Win window = convolution->attrs().window.value_or(attr::Win());
  int64_t sum = convolution->operand(1)->shape().dim(convolution->attrs().dim_labels->kernel_input);
  bool reversed = false, forward = false;
  for (const WindowDim& w : window) {
    sum *= w.size;
    if (w.size > 1) (w.reversed ? reversed : forward) = true;
  }
  const auto multiplied_in_floats = [](const Instruction* i) {
    return IsFloat(i->shape().type()) || (IsIntegral(i->shape().type()) && InfoOf(i->shape().type()).bits <= 8);
  };
  return !window.empty() && !IsDepthwise(convolution) && multiplied_in_floats(convolution->operand(0)) &&
         multiplied_in_floats(convolution->operand(1)) && !(reversed && forward) &&
         !(rounded && sum > kLongestRoundedSum);
}

// The dimension numbers over the operand of the input's transpose; nullopt where no kernel reads that order well.
std::optional<ConvDimensionNumbers> WithInputFolded(const Instruction* convolution) {
  const Instruction* t = convolution->operand(0);
  if (!IsTransposeOfValue(t) || t == convolution->operand(1) || !CopiesInput(convolution)) return std::nullopt;
  const Ints& p = *t->attrs().dimensions;
  ConvDimensionNumbers d = *convolution->attrs().dim_labels;
  d.input_batch = p[d.input_batch];
  d.input_feature = p[d.input_feature];
  for (int64_t& dim : d.input_spatial) dim = p[dim];
  const Shape& input = t->operand(0)->shape();
  int64_t innermost = input.rank() - 1;
  while (innermost > 0 && input.dim(innermost) == 1) --innermost;
  if (innermost != d.input_feature && innermost != d.input_spatial.back()) return std::nullopt;
  return d;
}

// Whether nobody but convolutions that read what is transposed as well needs `t`.
bool GoesWhenFolded(const Instruction* t) {
  return !t->IsRoot() && t->control_successors().empty() &&
         std::all_of(t->users().begin(), t->users().end(), [&](const Instruction* u) {
           return u->Is(Opcode::Convolution) && u->operand(0) == t && WithInputFolded(u).has_value();
         });
}

void Fold(Instruction* convolution, int64_t operand, const ConvDimensionNumbers& numbers) {
  Instruction* const t = convolution->operand(operand);
  convolution->mutable_attrs().dim_labels = numbers;
  convolution->ReplaceOperand(operand, t->operand(0));
  if (t->users().empty() && !t->IsRoot() && t->control_successors().empty()) convolution->parent()->Remove(t);
}

}  // namespace

absl::StatusOr<bool> ConvolutionTransposeFolding(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Convolution)) continue;
      while (const auto folded = WithKernelFolded(i)) {
        if (!ctx.Take()) return changed;
        Fold(i, 1, *folded);
        changed = true;
      }
      while (const auto folded = WithInputFolded(i)) {
        if (!GoesWhenFolded(i->operand(0))) break;
        if (!ctx.Take()) return changed;
        Fold(i, 0, *folded);
        changed = true;
      }
    }
  return changed;
}

}  // namespace kiln
