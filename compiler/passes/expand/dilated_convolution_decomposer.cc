// A convolution over an input with holes as one convolution for each phase of the holes.
//
// What: where the input is dilated by d, output d*q + t meets input elements only under the taps k with
//   k = (pad_low - t) mod d; those of one t are a convolution of the input itself with every d-th tap.
// Why: transposed convolutions and input gradients of strided ones otherwise multiply d^n - 1 zeros for each number.
// How: kernels are strided slices; the phases' results are interleaved by concatenations. Where all phases have
//   windows of one size at one place (upsampling by windows as wide as their step), they are one convolution with the
//   phases as features.
// Left alone: windows that move in steps or have holes themselves along a dilated dimension.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

int64_t CeilOfQuotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Exact also where a < 0.
int64_t Modulo(int64_t a, int64_t b) { return (a % b + b) % b; }

bool Applies(const Instruction* i) {
  if (!i->Is(Opcode::Convolution) || !i->attrs().window || i->shape().HasDynamic() || i->shape().ElementCount() == 0 ||
      i->attrs().batch_group_count.value_or(1) != 1)
    return false;
  const ConvDimensionNumbers& dims = *i->attrs().dim_labels;
  const auto n = static_cast<int64_t>(dims.output_spatial.size());
  if (dims.output_batch != 0 || dims.output_feature != n + 1) return false;
  bool holes = false;
  for (int64_t s = 0; s < n; ++s) {
    if (dims.output_spatial[s] != s + 1) return false;
    const WindowDim& w = (*i->attrs().window)[s];
    if (w.lhs_dilate == 1) continue;
    if (w.stride != 1 || w.rhs_dilate != 1) return false;
    holes = true;
  }
  return holes;
}

class Decomposition {
 public:
  explicit Decomposition(Instruction* i)
      : i_(i), c_(i->parent()), dims_(*i->attrs().dim_labels), window_(*i->attrs().window) {
    for (size_t s = 0; s < window_.size(); ++s)
      steps_.push_back(CeilOfQuotient(i->shape().dim(dims_.output_spatial[s]), window_[s].lhs_dilate));
  }

  // Phases that are no features of one convolution take one each.
  bool Pays() const {
    constexpr int64_t kMostPhases = 64;
    int64_t phases = 1;
    for (const WindowDim& w : window_) phases = std::min(phases * w.lhs_dilate, kMostPhases + 1);
    return phases <= kMostPhases || PhasesAreAlike();
  }

  Instruction* Build() {
    Expr whole = PhasesAreAlike() ? PhasesAsFeatures() : Interleaved(0, Ints(window_.size(), 0));
    Ints extents = i_->shape().dims();
    for (size_t s = 0; s < window_.size(); ++s) extents[dims_.output_spatial[s]] = steps_[s] * window_[s].lhs_dilate;
    whole = ReshapeTo(whole, extents);
    if (extents == i_->shape().dims()) return whole.get();
    return SliceOf(whole, Ints(extents.size(), 0), i_->shape().dims()).get();
  }

 private:
  // The results of all phases of the spatial dimensions from `s` on, given the phases of those before.
  Expr Interleaved(size_t s, Ints phase) {
    if (s == window_.size()) return Phase(phase);
    int64_t outer = i_->shape().dim(0);
    for (size_t k = 0; k <= s; ++k) outer *= steps_[k];
    std::vector<Expr> parts;
    for (phase[s] = 0; phase[s] < window_[s].lhs_dilate; ++phase[s]) {
      Expr part = Interleaved(s + 1, phase);
      parts.push_back(ReshapeTo(part, {outer, 1, part.shape().ElementCount() / outer}));
    }
    return parts.size() == 1 ? parts[0] : ConcatOf(parts, 1);
  }

  bool PhasesAreAlike() const {
    const auto n = static_cast<int64_t>(window_.size());
    if (i_->attrs().feature_group_count.value_or(1) != 1 || dims_.kernel_output != n + 1 || dims_.kernel_input != n)
      return false;
    for (int64_t s = 0; s < n; ++s)
      if (const WindowDim& w = window_[s]; dims_.kernel_spatial[s] != s || w.size % w.lhs_dilate != 0 ||
                                           Modulo(w.pad_low, w.lhs_dilate) != w.lhs_dilate - 1)
        return false;
    return true;
  }

  // [taps * d..., in, out] -> [taps..., in, d... * out], then [batch, q..., d... * out] -> [batch, q * d..., out].
  Expr PhasesAsFeatures() {
    const auto n = static_cast<int64_t>(window_.size());
    const Shape& kernel = i_->operand(1)->shape();
    attr::Win window = window_;
    Ints split, backwards, order, extents, results = {i_->shape().dim(0)}, apart = results, together = {0};
    int64_t phases = 1;
    for (int64_t s = 0; s < n; ++s) {
      const WindowDim& w = window_[s];
      const int64_t d = w.lhs_dilate, taps = w.size / d;
      split.push_back(taps);
      split.push_back(d);
      // Taps in the order of the results that they make.
      if (d > 1 && !w.reversed) backwards.push_back(2 * s + 1);
      order.push_back(2 * s);
      extents.push_back(taps);
      results.push_back(steps_[s]);
      phases *= d;
      window[s] = {taps, w.stride, (w.pad_low - (d - 1)) / d, 0, 1, w.rhs_dilate, w.reversed};
      window[s].pad_high = PadHigh(s, window[s]);
    }
    split.push_back(kernel.dim(n));
    split.push_back(kernel.dim(n + 1));
    order.push_back(2 * n);
    for (int64_t s = 0; s < n; ++s) order.push_back(2 * s + 1);
    order.push_back(2 * n + 1);
    extents.push_back(kernel.dim(n));
    extents.push_back(phases * kernel.dim(n + 1));
    Expr parts = ReshapeTo(i_->operand(1), split);
    if (!backwards.empty()) {
      parts = c_->Add(Opcode::Reverse, parts.shape(), {parts.get()});
      parts.get()->mutable_attrs().dimensions = backwards;
    }
    Expr part = ReshapeTo(TransposeBy(parts, order), extents);
    results.push_back(extents.back());
    Instruction* convolution =
        c_->AddClone(i_, Shape::Array(i_->shape().type(), results), {i_->operand(0), part.get()});
    convolution->mutable_attrs().window = window;
    apart.insert(apart.end(), steps_.begin(), steps_.end());
    for (int64_t s = 0; s < n; ++s) {
      apart.push_back(window_[s].lhs_dilate);
      together.push_back(1 + s);
      together.push_back(1 + n + s);
    }
    apart.push_back(kernel.dim(n + 1));
    together.push_back(1 + 2 * n);
    return TransposeBy(ReshapeTo(convolution, apart), together);
  }

  // What the window needs behind the input for all results of a phase.
  int64_t PadHigh(size_t s, const WindowDim& w) const {
    const int64_t in = i_->operand(0)->shape().dim(dims_.input_spatial[s]);
    return (steps_[s] - 1) * w.stride + w.DilatedSize() - in - w.pad_low;
  }

  Expr Phase(const Ints& phase) {
    attr::Win window = window_;
    Instruction* const kernel = i_->operand(1);
    std::vector<SliceDim> taps(static_cast<size_t>(kernel->shape().rank()));
    Ints extents = kernel->shape().dims(), out = i_->shape().dims();
    for (size_t d = 0; d < taps.size(); ++d) taps[d] = {0, extents[d], 1};
    bool any = true;
    for (size_t s = 0; s < window_.size(); ++s) {
      const WindowDim& w = window_[s];
      const int64_t d = w.lhs_dilate, first = Modulo(w.pad_low - phase[s], d);
      const int64_t count = first < w.size ? CeilOfQuotient(w.size - first, d) : 0;
      any = any && count > 0;
      if (!any) break;
      const int64_t begin = w.reversed ? Modulo(w.size - 1 - first, d) : first;
      taps[dims_.kernel_spatial[s]] = {begin, begin + (count - 1) * d + 1, d};
      extents[dims_.kernel_spatial[s]] = window[s].size = count;
      out[dims_.output_spatial[s]] = steps_[s];
      if (d == 1) continue;
      window[s].lhs_dilate = 1;
      window[s].pad_low = (w.pad_low - phase[s] - first) / d;
      window[s].pad_high = PadHigh(s, window[s]);
    }
    for (size_t s = 0; s < window_.size(); ++s) out[dims_.output_spatial[s]] = steps_[s];
    const PrimitiveType type = i_->shape().type();
    if (!any) return BroadcastTo(c_->AddConstant(Literal(Shape::Scalar(type))), out);
    Instruction* part = c_->Add(Opcode::Slice, Shape::Array(kernel->shape().type(), extents), {kernel});
    part->mutable_attrs().slice = taps;
    Instruction* convolution = c_->AddClone(i_, Shape::Array(type, out), {i_->operand(0), part});
    convolution->mutable_attrs().window = window;
    return convolution;
  }

  Instruction* const i_;
  Computation* const c_;
  const ConvDimensionNumbers dims_;
  const attr::Win window_;
  Ints steps_;  // results of each phase, by spatial dimension
};

}  // namespace

absl::StatusOr<bool> DilatedConvolutionDecomposer(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!Applies(i) || !Decomposition(i).Pays() || !ctx.Take()) continue;
      i->ReplaceAllUsesWith(Decomposition(i).Build());
      c->Remove(i);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
