// Gradients of the filters of depthwise convolutions as sums of products.
//
// What: a convolution with a group for each image and each output feature, whose windows are as large as a layer's
//   activations and which has as few results as a filter has taps: each tap becomes a sum, over images and positions,
//   of the input that it met times the gradient of what it made.
// Why: as a product of matrices each group has one column. The sums of all features are vectors, and those of all taps
//   are one loop over both arrays.
// Left alone: many results, small windows, inputs with holes, windows that are read backwards, several features to a
//   group, and floats of less than 32 bits, whose products would be rounded before they are summed.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

bool Applies(const Instruction* i) {
  constexpr int64_t kMostResults = 64, kLeastTaps = 64, kLeastGroups = 2;
  if (!i->Is(Opcode::Convolution) || !i->attrs().window || i->shape().HasDynamic() || i->shape().ElementCount() == 0)
    return false;
  const PrimitiveType type = i->shape().type();
  const Shape &x = i->operand(0)->shape(), &dy = i->operand(1)->shape();
  if ((type != PrimitiveType::F32 && type != PrimitiveType::F64) || x.type() != type || dy.type() != type) return false;
  const ConvDimensionNumbers& dims = *i->attrs().dim_labels;
  const int64_t groups = i->attrs().batch_group_count.value_or(1);
  if (groups < kLeastGroups || i->attrs().feature_group_count.value_or(1) != 1 || x.dim(dims.input_batch) != groups ||
      dy.dim(dims.kernel_output) != groups)
    return false;
  int64_t taps = 1, results = 1;
  for (size_t s = 0; s < dims.output_spatial.size(); ++s) {
    const WindowDim& w = (*i->attrs().window)[s];
    if (w.lhs_dilate != 1 || (w.reversed && w.size > 1)) return false;
    taps *= w.size;
    results *= i->shape().dim(dims.output_spatial[s]);
  }
  return results <= kMostResults && taps >= kLeastTaps && taps >= results;
}

class Sums {
 public:
  explicit Sums(Instruction* i)
      : i_(i),
        c_(i->parent()),
        dims_(*i->attrs().dim_labels),
        window_(*i->attrs().window),
        zero_(c_->AddConstant(Literal(Shape::Scalar(i->shape().type())))),
        add_(ScalarFunction(c_->module(), Opcode::Add, i->shape().type())),
        input_(Padded()),
        gradient_(AlongInput()) {}

  Instruction* Build() {
    std::vector<Expr> sums;
    Taps(0, Ints(window_.size(), 0), &sums);
    // [taps..., feature], and a batch of 1.
    const auto n = static_cast<int64_t>(window_.size());
    Ints extents, order(static_cast<size_t>(n) + 2);
    for (int64_t s = 0; s < n; ++s) {
      extents.push_back(i_->shape().dim(dims_.output_spatial[s]));
      order[dims_.output_spatial[s]] = s;
    }
    extents.push_back(sums[0].shape().ElementCount());
    extents.push_back(1);
    order[dims_.output_feature] = n;
    order[dims_.output_batch] = n + 1;
    return TransposeBy(ReshapeTo(sums.size() == 1 ? sums[0] : ConcatOf(sums, 0), extents), order).get();
  }

 private:
  Expr Padded() {
    std::vector<PadDim> padding(static_cast<size_t>(i_->operand(0)->shape().rank()));
    Ints extents = i_->operand(0)->shape().dims();
    for (size_t s = 0; s < window_.size(); ++s) {
      PadDim& p = padding[dims_.input_spatial[s]];
      p.low = window_[s].pad_low;
      p.high = window_[s].pad_high;
      extents[dims_.input_spatial[s]] += p.low + p.high;
    }
    if (extents == i_->operand(0)->shape().dims() &&
        std::all_of(padding.begin(), padding.end(), [](const PadDim& p) { return p == PadDim{}; }))
      return i_->operand(0);
    Instruction* pad = c_->Add(Opcode::Pad, Shape::Array(i_->shape().type(), extents), {i_->operand(0), zero_.get()});
    pad->mutable_attrs().padding = padding;
    return pad;
  }

  // The other operand with its dimensions in the input's order.
  Expr AlongInput() {
    Ints order(static_cast<size_t>(i_->operand(1)->shape().rank()));
    order[dims_.input_batch] = dims_.kernel_output;
    order[dims_.input_feature] = dims_.kernel_input;
    for (size_t s = 0; s < window_.size(); ++s) order[dims_.input_spatial[s]] = dims_.kernel_spatial[s];
    return TransposeBy(i_->operand(1), order);
  }

  // The sums of the taps at `at` in the spatial dimensions before `s`, each as [1, features].
  void Taps(size_t s, Ints at, std::vector<Expr>* sums) {
    if (s < window_.size()) {
      for (at[s] = 0; at[s] < i_->shape().dim(dims_.output_spatial[s]); ++at[s]) Taps(s + 1, at, sums);
      return;
    }
    std::vector<SliceDim> met;
    for (const int64_t extent : input_.shape().dims()) met.push_back({0, extent, 1});
    Ints summed = {dims_.input_feature};
    for (size_t k = 0; k < window_.size(); ++k) {
      const WindowDim& w = window_[k];
      const int64_t start = at[k] * w.stride;
      met[dims_.input_spatial[k]] = {start, start + w.DilatedSize(), w.rhs_dilate};
      summed.push_back(dims_.input_spatial[k]);
    }
    std::sort(summed.begin(), summed.end());
    Instruction* slice = c_->Add(Opcode::Slice, gradient_.shape(), {input_.get()});
    slice->mutable_attrs().slice = met;
    const Expr sum = ReduceOf(Expr(slice) * gradient_, zero_, summed, add_);
    sums->push_back(ReshapeTo(sum, {1, sum.shape().ElementCount()}));
  }

  Instruction* const i_;
  Computation* const c_;
  const ConvDimensionNumbers dims_;
  const attr::Win window_;
  const Expr zero_;
  Computation* const add_;
  const Expr input_, gradient_;
};

}  // namespace

absl::StatusOr<bool> DepthwiseGradientRewriter(Module& m, PassContext& ctx) {
  // Sums bring functions with them, which are computations of the module.
  std::vector<Instruction*> found;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder())
      if (Applies(i)) found.push_back(i);
  bool changed = false;
  for (Instruction* i : found) {
    if (!ctx.Take()) continue;
    i->ReplaceAllUsesWith(Sums(i).Build());
    i->parent()->Remove(i);
    changed = true;
  }
  return changed;
}

}  // namespace kiln
