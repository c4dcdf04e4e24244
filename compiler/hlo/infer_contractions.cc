#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {

namespace {

// The type that the text prefers; by itself the wider of the operands'.
PrimitiveType ProductType(const Shape& l, const Shape& r, Given given) {
  if (given && given->IsArray()) return given->type();
  return IsFloat(l.type()) && IsFloat(r.type()) ? WiderFloat(l.type(), r.type()) : l.type();
}

}  // namespace

absl::StatusOr<Shape> Dot(const Instruction& i, Given given) {
  const Attributes& a = i.attrs();
  REQUIRE(i.operand_count() >= 2, "takes 2 operands, not ", i.operand_count());
  const Shape &l = i.operand(0)->shape(), &r = i.operand(1)->shape();
  REQUIRE(l.IsArray() && r.IsArray(), "operands must be arrays");
  REQUIRE(i.Is(Opcode::ScaledDot) || a.sparsity || i.operand_count() == 2, "takes 2 operands, not ", i.operand_count());
  const Ints lb = ValueOr(a.lhs_batch_dims), rb = ValueOr(a.rhs_batch_dims);
  const Ints lc = ValueOr(a.lhs_contracting_dims), rc = ValueOr(a.rhs_contracting_dims);
  RETURN_IF_ERROR(CheckDims(lb, l.rank(), "lhs batch dim"));
  RETURN_IF_ERROR(CheckDims(rb, r.rank(), "rhs batch dim"));
  RETURN_IF_ERROR(CheckDims(lc, l.rank(), "lhs contracting dim"));
  RETURN_IF_ERROR(CheckDims(rc, r.rank(), "rhs contracting dim"));
  REQUIRE(lb.size() == rb.size(), "lhs has ", lb.size(), " batch dims, rhs ", rb.size());
  REQUIRE(lc.size() == rc.size(), "lhs has ", lc.size(), " contracting dims, rhs ", rc.size());
  if (!a.sparsity) {
    for (size_t k = 0; k < lc.size(); ++k)
      REQUIRE(l.dim(lc[k]) == r.dim(rc[k]) || l.is_dynamic(lc[k]) || r.is_dynamic(rc[k]),
              "contracting extents differ: lhs dim ", lc[k], " is ", l.dim(lc[k]), ", rhs dim ", rc[k], " is ",
              r.dim(rc[k]));
  }
  Ints dims;
  for (size_t k = 0; k < lb.size(); ++k) {
    REQUIRE(l.dim(lb[k]) == r.dim(rb[k]), "batch extents differ: lhs dim ", lb[k], " is ", l.dim(lb[k]), ", rhs dim ",
            rb[k], " is ", r.dim(rb[k]));
    dims.push_back(l.dim(lb[k]));
  }
  auto free = [](const Shape& s, const Ints& b, const Ints& c, Ints* out) {
    for (int64_t d = 0; d < s.rank(); ++d)
      if (std::find(b.begin(), b.end(), d) == b.end() && std::find(c.begin(), c.end(), d) == c.end())
        out->push_back(s.dim(d));
  };
  for (size_t k = 0; k < lb.size(); ++k)
    REQUIRE(std::find(lc.begin(), lc.end(), lb[k]) == lc.end(), "lhs dim ", lb[k], " is both batch and contracting");
  for (size_t k = 0; k < rb.size(); ++k)
    REQUIRE(std::find(rc.begin(), rc.end(), rb[k]) == rc.end(), "rhs dim ", rb[k], " is both batch and contracting");
  free(l, lb, lc, &dims);
  free(r, rb, rc, &dims);
  return Shape::Array(ProductType(l, r, given), dims);
}

// lhs, rhs and the sizes of groups. What is ragged decides where a dimension of groups stands.
absl::StatusOr<Shape> RaggedDot(const Instruction& i, Given given) {
  const Attributes& a = i.attrs();
  const Shape &l = i.operand(0)->shape(), &r = i.operand(1)->shape(), &sizes = i.operand(2)->shape();
  REQUIRE(l.IsArray() && r.IsArray() && sizes.IsArray(), "operands must be arrays");
  const Ints lb = ValueOr(a.lhs_batch_dims), rb = ValueOr(a.rhs_batch_dims), lc = ValueOr(a.lhs_contracting_dims),
             rc = ValueOr(a.rhs_contracting_dims), ragged = ValueOr(a.lhs_ragged_dims),
             group = ValueOr(a.rhs_group_dims);
  RETURN_IF_ERROR(CheckDims(lb, l.rank(), "lhs batch dim"));
  RETURN_IF_ERROR(CheckDims(rb, r.rank(), "rhs batch dim"));
  RETURN_IF_ERROR(CheckDims(lc, l.rank(), "lhs contracting dim"));
  RETURN_IF_ERROR(CheckDims(rc, r.rank(), "rhs contracting dim"));
  RETURN_IF_ERROR(CheckDims(ragged, l.rank(), "lhs ragged dim"));
  RETURN_IF_ERROR(CheckDims(group, r.rank(), "rhs group dim"));
  REQUIRE(ragged.size() == 1, "needs one ragged dimension of lhs, not ", ragged.size());
  REQUIRE(lb.size() == rb.size(), "lhs has ", lb.size(), " batch dims, rhs ", rb.size());
  REQUIRE(lc.size() == rc.size(), "lhs has ", lc.size(), " contracting dims, rhs ", rc.size());
  REQUIRE(IsIntegral(sizes.type()) && sizes.rank() >= 1, "sizes of groups are ", sizes.ToString(false));
  const auto in = [](const Ints& list, int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); };
  for (size_t k = 0; k < lb.size(); ++k)
    REQUIRE(SameExtent(l.dim(lb[k]), r.dim(rb[k])), "batch extents differ: lhs dim ", lb[k], " is ", l.dim(lb[k]),
            ", rhs dim ", rb[k], " is ", r.dim(rb[k]));
  for (size_t k = 0; k < lc.size(); ++k)
    REQUIRE(SameExtent(l.dim(lc[k]), r.dim(rc[k])), "contracting extents differ: lhs dim ", lc[k], " is ", l.dim(lc[k]),
            ", rhs dim ", rc[k], " is ", r.dim(rc[k]));
  Ints dims;
  const bool contracting = in(lc, ragged[0]), batch = in(lb, ragged[0]);
  REQUIRE(contracting || batch ? group.empty() : group.size() == 1, "has ", group.size(), " group dims of rhs");
  const int64_t groups = sizes.dims().back();
  REQUIRE(group.empty() || SameExtent(r.dim(group[0]), groups), "rhs has ", group.empty() ? 0 : r.dim(group[0]),
          " groups, the list of sizes ", groups);
  if (contracting) dims.push_back(groups);
  for (int64_t d : lb) dims.push_back(l.dim(d));
  for (int64_t d = 0; d < l.rank(); ++d)
    if (!in(lb, d) && !in(lc, d)) dims.push_back(l.dim(d));
  for (int64_t d = 0; d < r.rank(); ++d)
    if (!in(rb, d) && !in(rc, d) && !in(group, d)) dims.push_back(r.dim(d));
  return Shape::Array(ProductType(l, r, given), dims);
}

absl::StatusOr<Shape> Convolution(const Instruction& i, Given given) {
  const Attributes& a = i.attrs();
  const Shape &x = i.operand(0)->shape(), &k = i.operand(1)->shape();
  REQUIRE(a.dim_labels, "dim_labels is missing");
  const ConvDimensionNumbers& d = *a.dim_labels;
  REQUIRE(x.IsArray() && k.IsArray(), "operands must be arrays");
  REQUIRE(d.input_others + d.kernel_others + d.output_others == 0, "dim_labels ", d.ToString(),
          " leaves dimensions without a role");
  const size_t n = d.input_spatial.size();
  const attr::Win w = a.window.value_or(attr::Win(n));
  REQUIRE(x.rank() == static_cast<int64_t>(n + 2) && k.rank() == x.rank(), "dim_labels ", d.ToString(),
          " does not fit ", x.ToString(false), " and ", k.ToString(false));
  REQUIRE(w.size() == n, "window has ", w.size(), " dimensions, not ", n);
  const int64_t fg = a.feature_group_count.value_or(1), bg = a.batch_group_count.value_or(1);
  REQUIRE(fg >= 1 && bg >= 1 && (fg == 1 || bg == 1), "feature_group_count ", fg, " and batch_group_count ", bg,
          " do not go together");
  const int64_t ci = x.dim(d.input_feature), ki = k.dim(d.kernel_input), ko = k.dim(d.kernel_output),
                b = x.dim(d.input_batch);
  REQUIRE(ci < 0 || ki < 0 || ci == ki * fg, "input features ", ci, " are not kernel input features ", ki,
          " times feature_group_count ", fg);
  REQUIRE(ko % fg == 0, "kernel output features ", ko, " do not divide into ", fg, " groups");
  REQUIRE(b % bg == 0 && ko % bg == 0, "batch ", b, " or output features ", ko, " do not divide into ", bg,
          " batch groups");
  Ints dims(n + 2);
  dims[d.output_batch] = b / bg;
  dims[d.output_feature] = ko;
  for (size_t s = 0; s < n; ++s) {
    REQUIRE(x.dim(d.input_spatial[s]) >= 0 && k.dim(d.kernel_spatial[s]) >= 0, "spatial extents must be known");
    REQUIRE(w[s].size == k.dim(d.kernel_spatial[s]), "window size ", w[s].size, " is not the kernel's extent ",
            k.dim(d.kernel_spatial[s]));
    REQUIRE(w[s].stride > 0 && w[s].lhs_dilate > 0 && w[s].rhs_dilate > 0,
            "window stride and dilations must be positive");
    REQUIRE(WindowFits(x.dim(d.input_spatial[s]), w[s]), "window or padding of spatial dimension ", s, " is too large");
    dims[d.output_spatial[s]] = WindowedExtent(x.dim(d.input_spatial[s]), w[s]);
  }
  return Shape::Array(ProductType(x, k, given), dims);
}

}  // namespace kiln::infer
