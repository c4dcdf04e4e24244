// A convolution that is a matrix product becomes that dot: the window is as large as the input, as in gradients of
// kernels of one position and in layers behind a last pooling; or it is one position of very small images.
//
// Why: a dot sums over positions in whatever order both operands have them, and reads a transposed matrix in place,
// where
//   the convolution's canonical order had both activations copied first; and many small images are the rows of one
//   matrix.
// Left alone: windows that stride, dilate or reach beyond the input; groups; one position of images that are large
//   enough to be matrices themselves.
// Keeps: every result, but for the order of its sum.
#include <algorithm>
#include <numeric>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

// An operand without the transpose that makes it: dimension d of the operand is `place[d]` of `from`.
struct Source {
  Instruction* from;
  Ints place;
};

Source AsIs(Instruction* i) {
  Source s{i, {}};
  for (int64_t d = 0; d < i->shape().rank(); ++d) s.place.push_back(d);
  return s;
}

// A constant is transposed at compile time, as the convolution had it.
Source Untransposed(Instruction* i) {
  if (!i->Is(Opcode::Transpose) || i->operand(0)->Is(Opcode::Constant)) return AsIs(i);
  return {i->operand(0), *i->attrs().dimensions};
}

enum class Role { kNone, kSummed, kKept };  // of a spatial dimension

Role RoleOf(const WindowDim& w, int64_t in, int64_t out) {
  if (w.pad_low != 0 || w.pad_high != 0 || w.lhs_dilate != 1 || (w.size > 1 && (w.rhs_dilate != 1 || w.reversed)))
    return Role::kNone;
  if (w.size == in && out == 1) return Role::kSummed;
  return w.size == 1 && in == out ? Role::kKept : Role::kNone;
}

std::vector<Role> RolesOf(const Instruction* i) {
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  const attr::Win window = i->attrs().window.value_or(attr::Win());
  std::vector<Role> roles;
  for (size_t s = 0; s < window.size(); ++s)
    roles.push_back(
        RoleOf(window[s], i->operand(0)->shape().dim(d.input_spatial[s]), i->shape().dim(d.output_spatial[s])));
  return roles;
}

bool IsWanted(const Instruction* i) {
  constexpr int64_t kFewPositions = 8;  // of an image that is no matrix by itself
  if (!i->Is(Opcode::Convolution) || i->attrs().feature_group_count.value_or(1) != 1 ||
      i->attrs().batch_group_count.value_or(1) != 1 || i->shape().HasDynamic() || i->operand(0)->shape().HasDynamic() ||
      i->operand(1)->shape().HasDynamic())
    return false;
  const std::vector<Role> roles = RolesOf(i);
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  int64_t summed = 1, kept = 1;
  for (size_t s = 0; s < roles.size(); ++s) {
    if (roles[s] == Role::kNone) return false;
    (roles[s] == Role::kSummed ? summed : kept) *= i->operand(0)->shape().dim(d.input_spatial[s]);
  }
  return summed > 1 || (kept > 1 && kept < kFewPositions && i->shape().dim(d.output_batch) > 1);
}

// Pairs of dimensions that are summed over, in the order of the input's.
std::vector<std::pair<int64_t, int64_t>> Summed(const Instruction* i, const Source& x, const Source& k) {
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  const std::vector<Role> roles = RolesOf(i);
  std::vector<std::pair<int64_t, int64_t>> pairs = {
      {x.place[static_cast<size_t>(d.input_feature)], k.place[static_cast<size_t>(d.kernel_input)]}};
  for (size_t s = 0; s < roles.size(); ++s)
    if (roles[s] == Role::kSummed)
      pairs.push_back(
          {x.place[static_cast<size_t>(d.input_spatial[s])], k.place[static_cast<size_t>(d.kernel_spatial[s])]});
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

absl::StatusOr<Instruction*> AsDot(Instruction* i) {
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  const Source x = Untransposed(i->operand(0)), k = Untransposed(i->operand(1));
  DotSide l, r;
  for (const auto& [of_input, of_kernel] : Summed(i, x, k)) {
    l.contracting.push_back(of_input);
    r.contracting.push_back(of_kernel);
  }
  // The input's other dimensions as the dot has them, each with its place in the convolution's result.
  std::vector<std::pair<int64_t, int64_t>> kept = {{x.place[static_cast<size_t>(d.input_batch)], d.output_batch}};
  for (size_t s = 0; s < d.input_spatial.size(); ++s) {
    const int64_t of_input = x.place[static_cast<size_t>(d.input_spatial[s])];
    if (!Holds(l.contracting, of_input)) kept.push_back({of_input, d.output_spatial[s]});
  }
  std::sort(kept.begin(), kept.end());
  Ints dims, places;
  for (const auto& [of_input, of_result] : kept) {
    dims.push_back(x.from->shape().dim(of_input));
    places.push_back(of_result);
  }
  dims.push_back(i->shape().dim(d.output_feature));
  places.push_back(d.output_feature);
  Ints order(places.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return places[static_cast<size_t>(a)] < places[static_cast<size_t>(b)]; });
  // A kernel of one position along a dimension adds an extent of 1 there.
  const Expr rows = ReshapeTo(DotLike(i, x.from, l, k.from, r), dims);
  return ReshapeTo(TransposeBy(rows, order), i->shape().dims()).get();
}

}  // namespace

absl::StatusOr<bool> ConvolutionToDot(Module& m, PassContext& ctx) { return ExpandEach(m, ctx, IsWanted, AsDot); }

}  // namespace kiln
