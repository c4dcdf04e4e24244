// Convolutions with batch and spatial dimensions major and features minor (b01f_01io->b01f), one kind of grouping, and
// no taps that only ever meet padding.
//
// Why: the convolution kernel reads runs of features; every other order is a transpose around it, which fuses with its
//   producer. batch_group_count becomes feature groups: input [G*B, S, C] read as [B, S, G*C]. Kernels dilated beyond
//   the image (DeepLab's), or on images of few pixels, are mostly taps that multiply zeros.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

// The window without the taps that meet padding at every position of the output. `first`: how many went before the
// ones that are left. All are left if none meets the image.
WindowDim WithoutPaddedTaps(const WindowDim& w, int64_t input, int64_t output, int64_t* first) {
  *first = 0;
  if (input == 0 || output == 0) return w;
  const int64_t extent = (input - 1) * w.lhs_dilate + 1, reach = (output - 1) * w.stride;
  const auto meets = [&](int64_t tap) {
    const int64_t at = tap * w.rhs_dilate - w.pad_low;
    return at < extent && at + reach >= 0;
  };
  int64_t begin = 0, end = w.size;
  while (begin < end && !meets(begin)) ++begin;
  while (end > begin && !meets(end - 1)) --end;
  if (begin == end || end - begin == w.size) return w;
  WindowDim out = w;
  *first = begin;
  out.size = end - begin;
  if (out.size == 1) out.rhs_dilate = 1;
  out.pad_low = w.pad_low - begin * w.rhs_dilate;
  out.pad_high = reach + out.DilatedSize() - extent - out.pad_low;
  return out;
}

// `i`, or the same with a part of its kernel.
Instruction* DropPaddedTaps(Instruction* i, PassContext& ctx) {
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  attr::Win window = i->attrs().window.value_or(attr::Win());
  const Shape& kernel = i->operand(1)->shape();
  Ints start(kernel.rank(), 0), limit = kernel.dims();
  bool fewer = false;
  for (size_t s = 0; s < window.size(); ++s) {
    int64_t first;
    const WindowDim was = window[s];
    window[s] = WithoutPaddedTaps(was, i->operand(0)->shape().dim(d.input_spatial[s]),
                                  i->shape().dim(d.output_spatial[s]), &first);
    if (window[s].size == was.size) continue;
    const int64_t at = d.kernel_spatial[s];
    start[at] = was.reversed ? was.size - first - window[s].size : first;
    limit[at] = start[at] + window[s].size;
    fewer = true;
  }
  if (!fewer || !ctx.Take()) return i;
  Instruction* out = i->parent()->AddClone(i, i->shape(), {i->operand(0), SliceOf(i->operand(1), start, limit).get()});
  out->mutable_attrs().window = std::move(window);
  i->ReplaceAllUsesWith(out);
  i->parent()->Remove(i);
  return out;
}

}  // namespace

absl::StatusOr<bool> ConvolutionCanonicalization(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Convolution)) continue;
      Instruction* const whole = i;
      i = DropPaddedTaps(i, ctx);
      changed = changed || i != whole;
      const ConvDimensionNumbers d = *i->attrs().dim_labels;
      const int64_t n = static_cast<int64_t>(d.input_spatial.size());
      const int64_t bg = i->attrs().batch_group_count.value_or(1);
      ConvDimensionNumbers want;
      want.input_batch = want.output_batch = 0;
      want.input_feature = want.output_feature = n + 1;
      want.kernel_input = n;
      want.kernel_output = n + 1;
      for (int64_t s = 0; s < n; ++s) {
        want.input_spatial.push_back(s + 1);
        want.kernel_spatial.push_back(s);
        want.output_spatial.push_back(s + 1);
      }
      if (bg == 1 && d == want) continue;
      if (!ctx.Take()) continue;
      auto order = [](int64_t first, const Ints& spatial, int64_t last) {
        Ints p = {first};
        p.insert(p.end(), spatial.begin(), spatial.end());
        p.push_back(last);
        return p;
      };
      Expr x = TransposeBy(i->operand(0), order(d.input_batch, d.input_spatial, d.input_feature));
      Ints kp = d.kernel_spatial;
      kp.push_back(d.kernel_input);
      kp.push_back(d.kernel_output);
      Expr k = TransposeBy(i->operand(1), kp);
      if (bg > 1) {
        // [G*B, S..., C] -> [G, B, S..., C] -> [B, S..., G, C] -> [B, S..., G*C]
        Ints split = x.shape().dims();
        split[0] /= bg;
        split.insert(split.begin(), bg);
        Expr s = ReshapeTo(x, split);
        Ints p;
        for (int64_t q = 1; q <= n + 1; ++q) p.push_back(q);
        p.push_back(0);
        p.push_back(n + 2);
        s = TransposeBy(s, p);
        Ints merged = x.shape().dims();
        merged[0] /= bg;
        merged[n + 1] *= bg;
        x = ReshapeTo(s, merged);
      }
      Ints out_dims(n + 2);
      out_dims[0] = i->shape().dim(d.output_batch);
      out_dims[n + 1] = i->shape().dim(d.output_feature);
      for (int64_t s = 0; s < n; ++s) out_dims[s + 1] = i->shape().dim(d.output_spatial[s]);
      Instruction* conv = c->AddClone(i, Shape::Array(i->shape().type(), out_dims), {x.get(), k.get()});
      conv->mutable_attrs().dim_labels = want;
      if (bg > 1) {
        conv->mutable_attrs().batch_group_count.reset();
        conv->mutable_attrs().feature_group_count = bg;
      }
      Ints back(n + 2);
      back[d.output_batch] = 0;
      back[d.output_feature] = n + 1;
      for (int64_t s = 0; s < n; ++s) back[d.output_spatial[s]] = s + 1;
      i->ReplaceAllUsesWith(TransposeBy(conv, back).get());
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
