#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {
namespace {

absl::Status CheckStarts(const Instruction& i, int64_t first, int64_t rank) {
  if (i.operand_count() == first + 1 && i.operand(first)->shape().rank() == 1) {
    const Shape& s = i.operand(first)->shape();
    REQUIRE(s.IsArray() && IsIntegral(s.type()) && s.dim(0) == rank, "start indices are ", s.ToString(false));
    return absl::OkStatus();
  }
  REQUIRE(i.operand_count() == first + rank, "needs one start index per dimension");
  for (int64_t k = first; k < i.operand_count(); ++k) {
    const Shape& s = i.operand(k)->shape();
    REQUIRE(s.IsScalar() && IsIntegral(s.type()), "start index is ", s.ToString(false), ", not an integer");
    REQUIRE(s.type() == i.operand(first)->shape().type(), "start indices are of different types");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Shape> DynamicSlice(const Instruction& i, Given) {
  const Attributes& a = i.attrs();
  const Shape& x = i.operand(0)->shape();
  REQUIRE(x.IsArray() && a.dynamic_slice_sizes && static_cast<int64_t>(a.dynamic_slice_sizes->size()) == x.rank(),
          "dynamic_slice_sizes needs one entry per dimension");
  for (int64_t d = 0; d < x.rank(); ++d)
    REQUIRE((*a.dynamic_slice_sizes)[d] >= 0 && (x.dim(d) < 0 || (*a.dynamic_slice_sizes)[d] <= x.dim(d)),
            "slice size ", (*a.dynamic_slice_sizes)[d], " exceeds extent ", x.dim(d));
  RETURN_IF_ERROR(CheckStarts(i, 1, x.rank()));
  return Shape::Array(x.type(), *a.dynamic_slice_sizes);
}

absl::StatusOr<Shape> DynamicUpdateSlice(const Instruction& i, Given) {
  REQUIRE(i.operand_count() >= 2, "takes an array and an update");
  const Shape &x = i.operand(0)->shape(), &u = i.operand(1)->shape();
  REQUIRE(x.IsArray() && u.IsArray() && x.rank() == u.rank() && SameTypeButPrecision(x.type(), u.type()), "update ",
          u.ToString(false), " does not fit ", x.ToString(false));
  for (int64_t d = 0; d < x.rank(); ++d)
    REQUIRE(x.dim(d) < 0 || u.dim(d) <= x.dim(d), "update extent ", u.dim(d), " exceeds ", x.dim(d));
  RETURN_IF_ERROR(CheckStarts(i, 2, x.rank()));
  return x;
}

absl::StatusOr<Shape> Gather(const Instruction& i, Given) {
  const Attributes& a = i.attrs();
  const Shape &x = i.operand(0)->shape(), &idx = i.operand(1)->shape();
  REQUIRE(x.IsArray() && idx.IsArray() && IsIntegral(idx.type()), "takes an array and integer indices");
  REQUIRE(a.index_vector_dim && a.slice_sizes && a.start_index_map, "gather dimension numbers are missing");
  const Ints off = ValueOr(a.offset_dims), col = ValueOr(a.collapsed_slice_dims), ob = ValueOr(a.operand_batching_dims),
             sb = ValueOr(a.start_indices_batching_dims);
  const Ints& sizes = *a.slice_sizes;
  const int64_t ivd = *a.index_vector_dim;
  REQUIRE(static_cast<int64_t>(sizes.size()) == x.rank(), "slice_sizes has ", sizes.size(), " entries for rank ",
          x.rank());
  REQUIRE(ivd >= 0 && ivd <= idx.rank(), "index_vector_dim ", ivd, " is out of range");
  RETURN_IF_ERROR(CheckDims(col, x.rank(), "collapsed_slice_dims", true));
  RETURN_IF_ERROR(CheckDims(*a.start_index_map, x.rank(), "start_index_map"));
  RETURN_IF_ERROR(CheckDims(ob, x.rank(), "operand_batching_dims", true));
  RETURN_IF_ERROR(CheckDims(sb, idx.rank(), "start_indices_batching_dims"));
  REQUIRE(ob.size() == sb.size(), "operand_batching_dims has ", ob.size(), " entries, start_indices_batching_dims ",
          sb.size());
  for (size_t k = 0; k < ob.size(); ++k) {
    REQUIRE(!In(col, ob[k]), "dimension ", ob[k], " is a batching dimension and collapsed");
    REQUIRE(sb[k] != ivd, "start_indices_batching_dims names the index vector");
    REQUIRE(SameExtent(x.dim(ob[k]), idx.dim(sb[k])), "batching extents differ: operand ", x.dim(ob[k]), ", indices ",
            idx.dim(sb[k]));
  }
  const int64_t depth = ivd == idx.rank() ? 1 : idx.dim(ivd);
  REQUIRE(static_cast<int64_t>(a.start_index_map->size()) == depth, "start_index_map has ", a.start_index_map->size(),
          " entries, the index vector ", depth);
  for (int64_t d = 0; d < x.rank(); ++d) {
    REQUIRE(sizes[d] >= 0 && (x.dim(d) < 0 || sizes[d] <= x.dim(d)), "slice size ", sizes[d], " exceeds extent ",
            x.dim(d), " of dimension ", d);
    REQUIRE(sizes[d] <= 1 || (!In(col, d) && !In(ob, d)), "slice size ", sizes[d], " of dimension ", d,
            ", which is collapsed");
  }
  Ints batch;
  for (int64_t d = 0; d < idx.rank(); ++d)
    if (d != ivd) batch.push_back(idx.dim(d));
  Ints window;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (!In(col, d) && !In(ob, d)) window.push_back(sizes[d]);
  REQUIRE(window.size() == off.size(), "offset_dims has ", off.size(), " entries, the window ", window.size());
  const int64_t rank = static_cast<int64_t>(batch.size() + window.size());
  RETURN_IF_ERROR(CheckDims(off, rank, "offset_dims", true));
  Ints dims(rank);
  size_t wi = 0, bi = 0;
  for (int64_t d = 0; d < rank; ++d) dims[d] = In(off, d) ? window[wi++] : batch[bi++];
  return Shape::Array(x.type(), dims);
}

absl::StatusOr<Shape> Scatter(const Instruction& i, Given given) {
  const Attributes& a = i.attrs();
  REQUIRE(i.operand_count() % 2 == 1 && i.operand_count() >= 3, "takes n operands, indices and n updates");
  REQUIRE(a.to_apply, "to_apply is missing");
  const int64_t n = i.operand_count() / 2;
  const Computation* c = *a.to_apply;
  RETURN_IF_ERROR(CheckReducer(i, c, static_cast<size_t>(n)));
  const Shape &x = i.operand(0)->shape(), &idx = i.operand(n)->shape(), &u = i.operand(n + 1)->shape();
  for (int64_t k = 0; k < i.operand_count(); ++k)
    REQUIRE(i.operand(k)->shape().IsArray(), "operand ", k, " is not an array");
  REQUIRE(IsIntegral(idx.type()), "indices are ", TextOf(idx.type()), ", not integers");
  const Ints uw = ValueOr(a.update_window_dims), iw = ValueOr(a.inserted_window_dims),
             ib = ValueOr(a.input_batching_dims), sb = ValueOr(a.scatter_indices_batching_dims),
             to = ValueOr(a.scatter_dims_to_operand_dims);
  RETURN_IF_ERROR(CheckDims(uw, u.rank(), "update_window_dims", true));
  RETURN_IF_ERROR(CheckDims(iw, x.rank(), "inserted_window_dims", true));
  RETURN_IF_ERROR(CheckDims(ib, x.rank(), "input_batching_dims", true));
  RETURN_IF_ERROR(CheckDims(sb, idx.rank(), "scatter_indices_batching_dims"));
  RETURN_IF_ERROR(CheckDims(to, x.rank(), "scatter_dims_to_operand_dims"));
  const int64_t ivd = a.index_vector_dim.value_or(idx.rank());
  REQUIRE(ivd >= 0 && ivd <= idx.rank(), "index_vector_dim ", ivd, " is out of range");
  REQUIRE(static_cast<int64_t>(to.size()) == (ivd == idx.rank() ? 1 : idx.dim(ivd)),
          "scatter_dims_to_operand_dims does not fit the index vector");
  REQUIRE(uw.size() + iw.size() + ib.size() == static_cast<size_t>(x.rank()), "window dims do not add up to rank ",
          x.rank());
  REQUIRE(ib.size() == sb.size(), "input_batching_dims has ", ib.size(), " entries, scatter_indices_batching_dims ",
          sb.size());
  for (size_t k = 0; k < ib.size(); ++k) {
    REQUIRE(!In(iw, ib[k]), "dimension ", ib[k], " is a batching dimension and inserted");
    REQUIRE(sb[k] != ivd, "scatter_indices_batching_dims names the index vector");
    REQUIRE(SameExtent(x.dim(ib[k]), idx.dim(sb[k])), "batching extents differ: operand ", x.dim(ib[k]), ", indices ",
            idx.dim(sb[k]));
  }
  // An update is a window at each position of the indices.
  Ints window, scatter;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (!In(iw, d) && !In(ib, d)) window.push_back(x.dim(d));
  for (int64_t d = 0; d < idx.rank(); ++d)
    if (d != ivd) scatter.push_back(idx.dim(d));
  REQUIRE(u.rank() == static_cast<int64_t>(uw.size() + scatter.size()), "updates have rank ", u.rank(), ", not ",
          uw.size() + scatter.size());
  size_t wi = 0, si = 0;
  for (int64_t d = 0; d < u.rank(); ++d) {
    if (In(uw, d)) {
      REQUIRE(u.dim(d) < 0 || window[wi] < 0 || u.dim(d) <= window[wi], "update extent ", u.dim(d), " exceeds extent ",
              window[wi], " of the operand");
      ++wi;
    } else {
      REQUIRE(SameExtent(u.dim(d), scatter[si]), "update dimension ", d, " has extent ", u.dim(d), ", the indices ",
              scatter[si]);
      ++si;
    }
  }
  std::vector<Shape> out;
  for (int64_t k = 0; k < n; ++k) {
    const Shape &s = i.operand(k)->shape(), &up = i.operand(n + 1 + k)->shape();
    REQUIRE(SameExtents(s, x), "operand shapes differ: ", x.ToString(false), " and ", s.ToString(false));
    REQUIRE(SameExtents(up, u), "update shapes differ: ", u.ToString(false), " and ", up.ToString(false));
    RETURN_IF_ERROR(CheckReducerOperand(c, static_cast<size_t>(k), s.type(), "operand"));
    RETURN_IF_ERROR(CheckReducerOperand(c, static_cast<size_t>(n + k), up.type(), "update"));
    out.push_back(s);
  }
  return OneOrTuple(std::move(out), given);
}

}  // namespace kiln::infer
