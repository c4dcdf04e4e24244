#include "compiler/hlo/infer.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace kiln {
namespace {

#define REQUIRE(cond, ...)                            \
  do {                                                \
    if (!(cond)) return InvalidArgument(__VA_ARGS__); \
  } while (0)

absl::Status CheckDims(const Ints& dims, int64_t rank, absl::string_view what, bool sorted = false) {
  for (size_t i = 0; i < dims.size(); ++i) {
    REQUIRE(dims[i] >= 0 && dims[i] < rank, what, " ", dims[i], " is out of range for rank ", rank);
    for (size_t j = 0; j < i; ++j) REQUIRE(dims[i] != dims[j], what, " ", dims[i], " appears twice");
    if (sorted && i) REQUIRE(dims[i] > dims[i - 1], what, " must be ascending");
  }
  return absl::OkStatus();
}

Ints ValueOr(const std::optional<Ints>& v) { return v.value_or(Ints()); }

// Extents equal, or one of them dynamic.
bool SameExtents(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int64_t d = 0; d < a.rank(); ++d)
    if (a.dim(d) != b.dim(d) && !a.is_dynamic(d) && !b.is_dynamic(d)) return false;
  return true;
}

PrimitiveType WiderFloat(PrimitiveType a, PrimitiveType b) { return InfoOf(a).bits >= InfoOf(b).bits ? a : b; }

absl::StatusOr<Shape> InferElementwise(const Instruction& i) {
  const Shape& first = i.operand(0)->shape();
  REQUIRE(first.IsArray(), "operand 0 is ", first.ToString(), ", not an array");
  PrimitiveType t = first.type();
  Shape shape = first;
  for (int64_t k = 1; k < i.operand_count(); ++k) {
    const Shape& s = i.operand(k)->shape();
    REQUIRE(s.IsArray(), "operand ", k, " is ", s.ToString(), ", not an array");
    if (i.Is(Opcode::Select) && k >= 1) continue;
    if (i.Is(Opcode::Clamp)) continue;
    if (i.Is(Opcode::StochasticConvert)) continue;
    REQUIRE(SameExtents(first, s), "operand shapes differ: ", first.ToString(false), " and ", s.ToString(false));
    const bool shift = i.Is(Opcode::ShiftLeft) || i.Is(Opcode::ShiftRightLogical) || i.Is(Opcode::ShiftRightArithmetic);
    const bool both_float = IsFloat(t) && IsFloat(s.type());
    REQUIRE(s.type() == t || both_float || (shift && IsIntegral(t) && IsIntegral(s.type())),
            "operand types differ: ", TextOf(t), " and ", TextOf(s.type()));
    if (both_float) t = WiderFloat(t, s.type());
  }
  auto need = [&](bool ok, absl::string_view what) -> absl::Status {
    REQUIRE(ok, "takes ", what, ", not ", TextOf(t));
    return absl::OkStatus();
  };
  const bool fl = IsFloat(t), cx = IsComplex(t), in = IsIntegral(t), pr = t == PrimitiveType::Pred;
  switch (i.opcode()) {
    case Opcode::Compare: {
      REQUIRE(i.attrs().direction, "direction is missing");
      shape.set_type(PrimitiveType::Pred);
      return shape;
    }
    case Opcode::Select: {
      REQUIRE(t == PrimitiveType::Pred, "predicate is ", TextOf(t), ", not pred");
      const Shape &a = i.operand(1)->shape(), &b = i.operand(2)->shape();
      REQUIRE(SameExtents(a, b), "operand shapes differ: ", a.ToString(false), " and ", b.ToString(false));
      REQUIRE(a.type() == b.type() || (IsFloat(a.type()) && IsFloat(b.type())),
              "operand types differ: ", TextOf(a.type()), " and ", TextOf(b.type()));
      REQUIRE(first.rank() == 0 || SameExtents(first, a), "predicate ", first.ToString(false), " does not fit ",
              a.ToString(false));
      shape = a;
      shape.set_type(WiderFloat(a.type(), b.type()));
      return shape;
    }
    case Opcode::Clamp: {
      const Shape& x = i.operand(1)->shape();
      for (int k : {0, 2}) {
        const Shape& s = i.operand(k)->shape();
        REQUIRE(s.rank() == 0 || SameExtents(s, x), "bound ", s.ToString(false), " does not fit ", x.ToString(false));
        REQUIRE(s.type() == x.type() || (IsFloat(s.type()) && IsFloat(x.type())), "bound is ", TextOf(s.type()),
                ", operand ", TextOf(x.type()));
      }
      return x;
    }
    case Opcode::Convert: {
      REQUIRE(i.shape().IsArray(), "result is not an array");
      shape.set_type(i.shape().type());
      return shape;
    }
    case Opcode::StochasticConvert: {
      REQUIRE(fl, "takes floats");
      shape.set_type(i.shape().type());
      return shape;
    }
    case Opcode::IsFinite:
      RETURN_IF_ERROR(need(fl || cx, "floats"));
      shape.set_type(PrimitiveType::Pred);
      return shape;
    case Opcode::Complex:
      REQUIRE(t == PrimitiveType::F32 || t == PrimitiveType::F64, "takes f32 or f64, not ", TextOf(t));
      shape.set_type(ComplexOf(t));
      return shape;
    case Opcode::Real:
    case Opcode::Imag:
    case Opcode::Abs:
      if (i.Is(Opcode::Abs))
        RETURN_IF_ERROR(need(fl || cx || in, "numbers"));
      else
        RETURN_IF_ERROR(need(fl || cx, "floats or complex numbers"));
      shape.set_type(ComponentType(t));
      return shape;
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Not:
      RETURN_IF_ERROR(need(in || pr, "integers or pred"));
      break;
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
    case Opcode::Popcnt:
    case Opcode::CountLeadingZeros:
    case Opcode::Mulhi:
      RETURN_IF_ERROR(need(in, "integers"));
      break;
    case Opcode::Ceil:
    case Opcode::Floor:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::ReducePrecision:
    case Opcode::Erf:
      RETURN_IF_ERROR(need(fl, "floats"));
      break;
    case Opcode::Sqrt:
    case Opcode::Rsqrt:
      RETURN_IF_ERROR(need(fl || cx, "floats or complex numbers"));
      break;
    case Opcode::Negate:
    case Opcode::Sign:
    case Opcode::Remainder:
    case Opcode::Subtract:
      RETURN_IF_ERROR(need(!pr || i.Is(Opcode::Subtract), "numbers"));
      break;
    default:
      if (InfoOf(i.opcode()).traits & Transcendental && !i.Is(Opcode::Power))
        RETURN_IF_ERROR(need(fl || cx, "floats or complex numbers"));
      break;
  }
  shape.set_type(t);
  return shape;
}

absl::StatusOr<Shape> InferDot(const Instruction& i) {
  const Attributes& a = i.attrs();
  const Shape &l = i.operand(0)->shape(), &r = i.operand(1)->shape();
  REQUIRE(l.IsArray() && r.IsArray(), "operands must be arrays");
  const Ints lb = ValueOr(a.lhs_batch_dims), rb = ValueOr(a.rhs_batch_dims);
  const Ints lc = ValueOr(a.lhs_contracting_dims), rc = ValueOr(a.rhs_contracting_dims);
  RETURN_IF_ERROR(CheckDims(lb, l.rank(), "lhs batch dim"));
  RETURN_IF_ERROR(CheckDims(rb, r.rank(), "rhs batch dim"));
  RETURN_IF_ERROR(CheckDims(lc, l.rank(), "lhs contracting dim"));
  RETURN_IF_ERROR(CheckDims(rc, r.rank(), "rhs contracting dim"));
  REQUIRE(lb.size() == rb.size(), "lhs has ", lb.size(), " batch dims, rhs ", rb.size());
  REQUIRE(lc.size() == rc.size(), "lhs has ", lc.size(), " contracting dims, rhs ", rc.size());
  if (i.Is(Opcode::Dot) && !a.sparsity) {
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
  return Shape::Array(i.shape().type(), dims);  // the element type is the preferred one
}

absl::StatusOr<Shape> InferConvolution(const Instruction& i) {
  const Attributes& a = i.attrs();
  const Shape &x = i.operand(0)->shape(), &k = i.operand(1)->shape();
  REQUIRE(a.dim_labels, "dim_labels is missing");
  const ConvDimensionNumbers& d = *a.dim_labels;
  const size_t n = d.input_spatial.size();
  const attr::Win w = a.window.value_or(attr::Win());
  REQUIRE(x.rank() == static_cast<int64_t>(n + 2) && k.rank() == x.rank(), "dim_labels ", d.ToString(),
          " does not fit ", x.ToString(false), " and ", k.ToString(false));
  REQUIRE(w.size() == n, "window has ", w.size(), " dimensions, not ", n);
  const int64_t fg = a.feature_group_count.value_or(1), bg = a.batch_group_count.value_or(1);
  REQUIRE(fg >= 1 && bg >= 1 && (fg == 1 || bg == 1), "feature_group_count ", fg, " and batch_group_count ", bg,
          " do not go together");
  const int64_t ci = x.dim(d.input_feature), ki = k.dim(d.kernel_input), ko = k.dim(d.kernel_output),
                b = x.dim(d.input_batch);
  REQUIRE(ci == ki * fg, "input features ", ci, " are not kernel input features ", ki, " times feature_group_count ",
          fg);
  REQUIRE(ko % fg == 0, "kernel output features ", ko, " do not divide into ", fg, " groups");
  REQUIRE(b % bg == 0 && ko % bg == 0, "batch ", b, " or output features ", ko, " do not divide into ", bg,
          " batch groups");
  Ints dims(n + 2);
  dims[d.output_batch] = b / bg;
  dims[d.output_feature] = ko;
  for (size_t s = 0; s < n; ++s) {
    REQUIRE(w[s].size == k.dim(d.kernel_spatial[s]), "window size ", w[s].size, " is not the kernel's extent ",
            k.dim(d.kernel_spatial[s]));
    REQUIRE(w[s].stride > 0 && w[s].lhs_dilate > 0 && w[s].rhs_dilate > 0,
            "window stride and dilations must be positive");
    dims[d.output_spatial[s]] = WindowedExtent(x.dim(d.input_spatial[s]), w[s]);
  }
  return Shape::Array(i.shape().type(), dims);
}

absl::Status CheckReducer(const Instruction& i, size_t n) {
  REQUIRE(i.attrs().to_apply, "to_apply is missing");
  const Computation* c = *i.attrs().to_apply;
  REQUIRE(c->parameters().size() == 2 * n, "reducer ", c->name(), " has ", c->parameters().size(), " parameters, not ",
          2 * n);
  for (const Instruction* p : c->parameters())
    REQUIRE(p->shape().IsScalar(), "reducer parameter ", p->name(), " is no scalar");
  return absl::OkStatus();
}

absl::StatusOr<Shape> InferReduce(const Instruction& i) {
  REQUIRE(i.operand_count() >= 2 && i.operand_count() % 2 == 0, "takes as many initial values as arrays");
  const size_t n = i.operand_count() / 2;
  RETURN_IF_ERROR(CheckReducer(i, n));
  const Ints dims = ValueOr(i.attrs().dimensions);
  const Shape& x = i.operand(0)->shape();
  REQUIRE(x.IsArray(), "operand 0 is not an array");
  RETURN_IF_ERROR(CheckDims(dims, x.rank(), "reduced dimension"));
  std::vector<Shape> out;
  for (size_t k = 0; k < n; ++k) {
    const Shape &s = i.operand(k)->shape(), &init = i.operand(n + k)->shape();
    REQUIRE(SameExtents(s, x), "operand shapes differ: ", x.ToString(false), " and ", s.ToString(false));
    REQUIRE(init.rank() == 0 && init.IsArray(), "initial value ", k, " is no scalar");
    REQUIRE(init.type() == s.type() || (IsFloat(init.type()) && IsFloat(s.type())), "initial value is ",
            TextOf(init.type()), ", operand ", TextOf(s.type()));
    Ints left;
    for (int64_t d = 0; d < s.rank(); ++d)
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) left.push_back(s.dim(d));
    // The reducer decides the element type.
    const Shape& r = (*i.attrs().to_apply)->root()->shape();
    out.push_back(Shape::Array(n == 1 && !r.IsTuple()                 ? r.type()
                               : r.IsTuple() && r.tuple().size() == n ? r.tuple()[k].type()
                                                                      : s.type(),
                               left));
  }
  return n == 1 && !i.shape().IsTuple() ? out[0] : Shape::Tuple(out);
}

absl::StatusOr<Shape> InferReduceWindow(const Instruction& i) {
  REQUIRE(i.operand_count() >= 2 && i.operand_count() % 2 == 0, "takes as many initial values as arrays");
  const size_t n = i.operand_count() / 2;
  RETURN_IF_ERROR(CheckReducer(i, n));
  std::vector<Shape> out;
  for (size_t k = 0; k < n; ++k) {
    Shape s = i.operand(k)->shape();
    const attr::Win w = i.attrs().window.value_or(attr::Win(s.rank()));
    REQUIRE(static_cast<int64_t>(w.size()) == s.rank(), "window has ", w.size(), " dimensions, operand ", s.rank());
    for (int64_t d = 0; d < s.rank(); ++d) {
      REQUIRE(w[d].stride > 0 && w[d].lhs_dilate > 0 && w[d].rhs_dilate > 0 && w[d].size >= 0,
              "window stride and dilations must be positive");
      s.mutable_dims()[d] = WindowedExtent(s.dim(d), w[d]);
    }
    out.push_back(std::move(s));
  }
  return n == 1 && !i.shape().IsTuple() ? out[0] : Shape::Tuple(out);
}

absl::StatusOr<Shape> InferGather(const Instruction& i) {
  const Attributes& a = i.attrs();
  const Shape &x = i.operand(0)->shape(), &idx = i.operand(1)->shape();
  REQUIRE(a.index_vector_dim && a.slice_sizes && a.start_index_map, "gather dimension numbers are missing");
  const Ints off = ValueOr(a.offset_dims), col = ValueOr(a.collapsed_slice_dims), ob = ValueOr(a.operand_batching_dims);
  const Ints& sizes = *a.slice_sizes;
  const int64_t ivd = *a.index_vector_dim;
  REQUIRE(static_cast<int64_t>(sizes.size()) == x.rank(), "slice_sizes has ", sizes.size(), " entries for rank ",
          x.rank());
  REQUIRE(ivd >= 0 && ivd <= idx.rank(), "index_vector_dim ", ivd, " is out of range");
  RETURN_IF_ERROR(CheckDims(col, x.rank(), "collapsed_slice_dims"));
  RETURN_IF_ERROR(CheckDims(*a.start_index_map, x.rank(), "start_index_map"));
  const int64_t depth = ivd == idx.rank() ? 1 : idx.dim(ivd);
  REQUIRE(static_cast<int64_t>(a.start_index_map->size()) == depth, "start_index_map has ", a.start_index_map->size(),
          " entries, the index vector ", depth);
  for (int64_t d = 0; d < x.rank(); ++d)
    REQUIRE(sizes[d] >= 0 && sizes[d] <= x.dim(d), "slice size ", sizes[d], " exceeds extent ", x.dim(d),
            " of dimension ", d);
  Ints batch;
  for (int64_t d = 0; d < idx.rank(); ++d)
    if (d != ivd) batch.push_back(idx.dim(d));
  Ints window;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (std::find(col.begin(), col.end(), d) == col.end() && std::find(ob.begin(), ob.end(), d) == ob.end())
      window.push_back(sizes[d]);
  REQUIRE(window.size() == off.size(), "offset_dims has ", off.size(), " entries, the window ", window.size());
  const int64_t rank = static_cast<int64_t>(batch.size() + window.size());
  RETURN_IF_ERROR(CheckDims(off, rank, "offset_dims", true));
  Ints dims(rank);
  size_t wi = 0, bi = 0;
  for (int64_t d = 0; d < rank; ++d)
    dims[d] = std::find(off.begin(), off.end(), d) != off.end() ? window[wi++] : batch[bi++];
  return Shape::Array(x.type(), dims);
}

absl::StatusOr<Shape> InferCall(const Instruction& i, const Computation* c, absl::string_view what) {
  REQUIRE(static_cast<int64_t>(c->parameters().size()) == i.operand_count(), what, " ", c->name(), " takes ",
          c->parameters().size(), " operands, not ", i.operand_count());
  for (int64_t k = 0; k < i.operand_count(); ++k)
    REQUIRE(c->parameter(k)->shape().Compatible(i.operand(k)->shape()), "operand ", k, " is ",
            i.operand(k)->shape().ToString(false), ", ", what, " ", c->name(), " takes ",
            c->parameter(k)->shape().ToString(false));
  return c->root()->shape();
}

}  // namespace

int64_t WindowedExtent(int64_t input, const WindowDim& w) {
  const int64_t base = input == 0 ? 0 : (input - 1) * w.lhs_dilate + 1;
  const int64_t padded = base + w.pad_low + w.pad_high;
  const int64_t win = w.DilatedSize();
  if (padded < win || padded <= 0) return (padded == 0 && win == 0) ? 1 : 0;
  return (padded - win) / w.stride + 1;
}

absl::StatusOr<Shape> InferShape(const Instruction& i) {
  const Attributes& a = i.attrs();
  if (i.IsElementwise()) return InferElementwise(i);
  auto operand_shape = [&](int64_t k) -> const Shape& { return i.operand(k)->shape(); };
  switch (i.opcode()) {
    case Opcode::Broadcast: {
      const Shape& x = operand_shape(0);
      REQUIRE(x.IsArray() && i.shape().IsArray(), "takes an array");
      const Ints dims = ValueOr(a.dimensions);
      REQUIRE(static_cast<int64_t>(dims.size()) == x.rank(), "dimensions has ", dims.size(), " entries for rank ",
              x.rank());
      RETURN_IF_ERROR(CheckDims(dims, i.shape().rank(), "broadcast dimension"));
      for (size_t k = 0; k < dims.size(); ++k)
        REQUIRE(x.dim(k) == i.shape().dim(dims[k]), "operand dim ", k, " is ", x.dim(k), ", result dim ", dims[k],
                " is ", i.shape().dim(dims[k]));
      return Shape::Array(x.type(), i.shape().dims());
    }
    case Opcode::Reshape:
    case Opcode::DynamicReshape: {
      const Shape& x = operand_shape(0);
      REQUIRE(x.IsArray() && i.shape().IsArray(), "takes an array");
      REQUIRE(x.ElementCount() == i.shape().ElementCount(), "element counts differ: ", x.ToString(false), " and ",
              i.shape().ToString(false));
      return Shape::Array(x.type(), i.shape().dims());
    }
    case Opcode::BitcastConvert: {
      const Shape& x = operand_shape(0);
      REQUIRE(x.IsArray() && i.shape().IsArray(), "takes an array");
      const int from = InfoOf(x.type()).bits, to = InfoOf(i.shape().type()).bits;
      Shape s = Shape::Array(i.shape().type(), x.dims());
      REQUIRE(IsComplex(x.type()) == IsComplex(i.shape().type()), "cannot reinterpret ", TextOf(x.type()), " as ",
              TextOf(i.shape().type()));
      if (to > from) {
        REQUIRE(x.rank() > 0 && x.dims().back() == to / from, "the minor dimension must be ", to / from, " to make ",
                TextOf(i.shape().type()), " of ", TextOf(x.type()));
        s.mutable_dims().pop_back();
      } else if (to < from) {
        s.mutable_dims().push_back(from / to);
      }
      return Shape::Array(s.type(), s.dims());
    }
    case Opcode::Transpose: {
      const Shape& x = operand_shape(0);
      const Ints p = ValueOr(a.dimensions);
      REQUIRE(static_cast<int64_t>(p.size()) == x.rank(), "dimensions has ", p.size(), " entries for rank ", x.rank());
      RETURN_IF_ERROR(CheckDims(p, x.rank(), "dimension"));
      Ints dims;
      for (int64_t d : p) dims.push_back(x.dim(d));
      return Shape::Array(x.type(), dims);
    }
    case Opcode::Reverse: {
      RETURN_IF_ERROR(CheckDims(ValueOr(a.dimensions), operand_shape(0).rank(), "dimension"));
      return operand_shape(0);
    }
    case Opcode::Slice: {
      Shape s = operand_shape(0);
      REQUIRE(a.slice && static_cast<int64_t>(a.slice->size()) == s.rank(), "slice needs one range per dimension");
      for (int64_t d = 0; d < s.rank(); ++d) {
        const SliceDim& r = (*a.slice)[d];
        REQUIRE(r.start >= 0 && r.limit >= r.start && r.limit <= s.dim(d) && r.stride > 0, "range [", r.start, ":",
                r.limit, ":", r.stride, "] does not fit extent ", s.dim(d), " of dimension ", d);
        s.mutable_dims()[d] = (r.limit - r.start + r.stride - 1) / r.stride;
      }
      return Shape::Array(s.type(), s.dims());
    }
    case Opcode::Pad: {
      Shape s = operand_shape(0);
      const attr::Padding p = a.padding.value_or(attr::Padding());
      REQUIRE(static_cast<int64_t>(p.size()) == s.rank(), "padding needs one entry per dimension");
      REQUIRE(operand_shape(1).rank() == 0, "padding value is no scalar");
      for (int64_t d = 0; d < s.rank(); ++d) {
        REQUIRE(p[d].interior >= 0, "negative interior padding");
        const int64_t n = s.dim(d) + (s.dim(d) > 0 ? (s.dim(d) - 1) * p[d].interior : 0) + p[d].low + p[d].high;
        s.mutable_dims()[d] = std::max<int64_t>(n, 0);
      }
      return Shape::Array(s.type(), s.dims());
    }
    case Opcode::Concatenate: {
      REQUIRE(i.operand_count() > 0 && a.dimensions && a.dimensions->size() == 1, "takes operands and one dimension");
      const int64_t d = (*a.dimensions)[0];
      Shape s = operand_shape(0);
      REQUIRE(d >= 0 && d < s.rank(), "dimension ", d, " is out of range for rank ", s.rank());
      for (int64_t k = 1; k < i.operand_count(); ++k) {
        const Shape& o = operand_shape(k);
        REQUIRE(o.rank() == s.rank() && o.type() == s.type(), "operand ", k, " is ", o.ToString(false), ", operand 0 ",
                operand_shape(0).ToString(false));
        for (int64_t e = 0; e < s.rank(); ++e)
          REQUIRE(e == d || o.dim(e) == s.dim(e), "operand ", k, " has extent ", o.dim(e), " in dimension ", e,
                  ", operand 0 ", s.dim(e));
        s.mutable_dims()[d] += o.dim(d);
      }
      return Shape::Array(s.type(), s.dims());
    }
    case Opcode::Iota: {
      REQUIRE(i.shape().IsArray() && a.iota_dimension.value_or(0) >= 0 &&
                  a.iota_dimension.value_or(0) < std::max<int64_t>(i.shape().rank(), 1),
              "iota_dimension is out of range");
      return i.shape();
    }
    case Opcode::DynamicSlice: {
      const Shape& x = operand_shape(0);
      REQUIRE(a.dynamic_slice_sizes && static_cast<int64_t>(a.dynamic_slice_sizes->size()) == x.rank(),
              "dynamic_slice_sizes needs one entry per dimension");
      for (int64_t d = 0; d < x.rank(); ++d)
        REQUIRE((*a.dynamic_slice_sizes)[d] >= 0 && (*a.dynamic_slice_sizes)[d] <= x.dim(d), "slice size ",
                (*a.dynamic_slice_sizes)[d], " exceeds extent ", x.dim(d));
      REQUIRE(i.operand_count() == 1 + x.rank() || (i.operand_count() == 2 && operand_shape(1).rank() == 1),
              "needs one start index per dimension");
      return Shape::Array(x.type(), *a.dynamic_slice_sizes);
    }
    case Opcode::DynamicUpdateSlice: {
      REQUIRE(i.operand_count() >= 2, "takes an array and an update");
      const Shape &x = operand_shape(0), &u = operand_shape(1);
      REQUIRE(x.rank() == u.rank() && (x.type() == u.type() || (IsFloat(x.type()) && IsFloat(u.type()))), "update ",
              u.ToString(false), " does not fit ", x.ToString(false));
      for (int64_t d = 0; d < x.rank(); ++d)
        REQUIRE(u.dim(d) <= x.dim(d), "update extent ", u.dim(d), " exceeds ", x.dim(d));
      REQUIRE(i.operand_count() == 2 + x.rank() || (i.operand_count() == 3 && operand_shape(2).rank() == 1),
              "needs one start index per dimension");
      return x;
    }
    case Opcode::Gather:
      return InferGather(i);
    case Opcode::Scatter: {
      REQUIRE(i.operand_count() % 2 == 1 && i.operand_count() >= 3, "takes n operands, indices and n updates");
      const size_t n = i.operand_count() / 2;
      RETURN_IF_ERROR(CheckReducer(i, n));
      const Shape &x = operand_shape(0), &idx = operand_shape(n), &u = operand_shape(n + 1);
      const Ints uw = ValueOr(a.update_window_dims), iw = ValueOr(a.inserted_window_dims),
                 ib = ValueOr(a.input_batching_dims), to = ValueOr(a.scatter_dims_to_operand_dims);
      RETURN_IF_ERROR(CheckDims(uw, u.rank(), "update_window_dims", true));
      RETURN_IF_ERROR(CheckDims(iw, x.rank(), "inserted_window_dims"));
      RETURN_IF_ERROR(CheckDims(to, x.rank(), "scatter_dims_to_operand_dims"));
      const int64_t ivd = a.index_vector_dim.value_or(idx.rank());
      REQUIRE(ivd >= 0 && ivd <= idx.rank(), "index_vector_dim ", ivd, " is out of range");
      REQUIRE(static_cast<int64_t>(to.size()) == (ivd == idx.rank() ? 1 : idx.dim(ivd)),
              "scatter_dims_to_operand_dims does not fit the index vector");
      REQUIRE(uw.size() + iw.size() + ib.size() == static_cast<size_t>(x.rank()), "window dims do not add up to rank ",
              x.rank());
      std::vector<Shape> out;
      for (size_t k = 0; k < n; ++k) out.push_back(operand_shape(k));
      return n == 1 && !i.shape().IsTuple() ? out[0] : Shape::Tuple(out);
    }
    case Opcode::Dot:
    case Opcode::ScaledDot:
      return InferDot(i);
    case Opcode::Convolution:
      return InferConvolution(i);
    case Opcode::Reduce:
      return InferReduce(i);
    case Opcode::ReduceWindow:
      return InferReduceWindow(i);
    case Opcode::SelectAndScatter: {
      REQUIRE(a.select && a.scatter, "select or scatter is missing");
      return operand_shape(0);
    }
    case Opcode::Map: {
      REQUIRE(a.to_apply && i.operand_count() > 0, "takes operands and to_apply");
      return Shape::Array((*a.to_apply)->root()->shape().type(), operand_shape(0).dims());
    }
    case Opcode::Sort: {
      REQUIRE(i.operand_count() > 0 && a.to_apply, "takes operands and a comparator");
      const Computation* c = *a.to_apply;
      REQUIRE(static_cast<int64_t>(c->parameters().size()) == 2 * i.operand_count(), "comparator ", c->name(), " has ",
              c->parameters().size(), " parameters, not ", 2 * i.operand_count());
      REQUIRE(c->root()->shape().type() == PrimitiveType::Pred && c->root()->shape().rank() == 0, "comparator ",
              c->name(), " does not return pred[]");
      const Ints d = a.dimensions.value_or(Ints{std::max<int64_t>(operand_shape(0).rank() - 1, 0)});
      REQUIRE(d.size() == 1 && (operand_shape(0).rank() == 0 || (d[0] >= 0 && d[0] < operand_shape(0).rank())),
              "sorts one dimension of its operands");
      std::vector<Shape> out;
      for (const Instruction* o : i.operands()) {
        REQUIRE(SameExtents(o->shape(), operand_shape(0)), "operand shapes differ: ", operand_shape(0).ToString(false),
                " and ", o->shape().ToString(false));
        out.push_back(o->shape());
      }
      return out.size() == 1 && !i.shape().IsTuple() ? out[0] : Shape::Tuple(out);
    }
    case Opcode::Tuple: {
      std::vector<Shape> out;
      for (const Instruction* o : i.operands()) out.push_back(o->shape());
      return Shape::Tuple(out);
    }
    case Opcode::GetTupleElement: {
      const Shape& t = operand_shape(0);
      REQUIRE(t.IsTuple(), "operand is ", t.ToString(false), ", not a tuple");
      REQUIRE(a.tuple_index && *a.tuple_index >= 0 && *a.tuple_index < static_cast<int64_t>(t.tuple().size()),
              "index is out of range for ", t.tuple().size(), " elements");
      return t.tuple()[*a.tuple_index];
    }
    case Opcode::Call: {
      REQUIRE(a.to_apply, "to_apply is missing");
      return InferCall(i, *a.to_apply, "computation");
    }
    case Opcode::Fusion: {
      REQUIRE(a.calls, "calls is missing");
      return InferCall(i, *a.calls, "fusion computation");
    }
    case Opcode::While: {
      REQUIRE(a.condition && a.body, "condition or body is missing");
      const Shape& s = operand_shape(0);
      for (Computation* c : {*a.condition, *a.body}) {
        REQUIRE(c->parameters().size() == 1, "computation ", c->name(), " takes ", c->parameters().size(),
                " parameters, not 1");
        REQUIRE(c->parameter(0)->shape().Compatible(s), "computation ", c->name(), " takes ",
                c->parameter(0)->shape().ToString(false), ", the state is ", s.ToString(false));
      }
      REQUIRE((*a.condition)->root()->shape().Compatible(Shape::Scalar(PrimitiveType::Pred)), "condition ",
              (*a.condition)->name(), " does not return pred[]");
      REQUIRE((*a.body)->root()->shape().Compatible(s), "body ", (*a.body)->name(), " returns ",
              (*a.body)->root()->shape().ToString(false), ", the state is ", s.ToString(false));
      return s;
    }
    case Opcode::Conditional: {
      std::vector<Computation*> branches = a.branch_computations.value_or(std::vector<Computation*>());
      if (a.true_computation) branches.push_back(*a.true_computation);
      if (a.false_computation) branches.push_back(*a.false_computation);
      REQUIRE(!branches.empty() && i.operand_count() == static_cast<int64_t>(branches.size()) + 1,
              "takes an index and one operand per branch (", branches.size(), "), not ", i.operand_count(),
              " operands");
      const Shape& sel = operand_shape(0);
      REQUIRE(sel.rank() == 0 && (sel.type() == PrimitiveType::Pred || sel.type() == PrimitiveType::S32), "index is ",
              sel.ToString(false), ", not pred[] or s32[]");
      for (size_t b = 0; b < branches.size(); ++b) {
        REQUIRE(branches[b]->parameters().size() == 1, "branch ", branches[b]->name(), " takes ",
                branches[b]->parameters().size(), " parameters, not 1");
        REQUIRE(branches[b]->parameter(0)->shape().Compatible(operand_shape(b + 1)), "branch ", branches[b]->name(),
                " takes ", branches[b]->parameter(0)->shape().ToString(false), ", operand is ",
                operand_shape(b + 1).ToString(false));
        REQUIRE(branches[b]->root()->shape().Compatible(branches[0]->root()->shape()),
                "branches return different shapes");
      }
      return branches[0]->root()->shape();
    }
    case Opcode::Cholesky:
    case Opcode::OptimizationBarrier:
    case Opcode::Domain:
    case Opcode::AddDependency:
      return operand_shape(0);
    case Opcode::TriangularSolve: {
      const Shape &x = operand_shape(0), &b = operand_shape(1);
      REQUIRE(x.rank() >= 2 && x.rank() == b.rank(), "operands must be matrices of one rank");
      REQUIRE(x.dim(x.rank() - 1) == x.dim(x.rank() - 2), "the coefficient matrix ", x.ToString(false),
              " is not square");
      return b;
    }
    case Opcode::AfterAll:
      return Shape::Token();
    case Opcode::GetDimensionSize:
      return Shape::Scalar(PrimitiveType::S32);
    case Opcode::SetDimensionSize: {
      const Ints d = ValueOr(a.dimensions);
      REQUIRE(d.size() == 1 && d[0] >= 0 && d[0] < operand_shape(0).rank(), "names one dimension of its operand");
      return operand_shape(0);
    }
    case Opcode::BatchNormTraining:
    case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference: {
      const Shape& x = operand_shape(0);
      const int64_t f = a.feature_index.value_or(-1);
      REQUIRE(f >= 0 && f < x.rank(), "feature_index is out of range");
      const Shape v = Shape::Array(x.type(), {x.dim(f)});
      for (int64_t k = 1; k < i.operand_count(); ++k) {
        if (i.Is(Opcode::BatchNormGrad) && k == 4) continue;
        REQUIRE(operand_shape(k).dims() == v.dims(), "operand ", k, " is ", operand_shape(k).ToString(false), ", not ",
                v.ToString(false));
      }
      return i.Is(Opcode::BatchNormInference) ? x : Shape::Tuple({x, v, v});
    }
    case Opcode::TopK: {
      const Shape& x = operand_shape(0);
      REQUIRE(x.rank() >= 1 && a.k && *a.k >= 0 && *a.k <= x.dims().back(), "k is out of range");
      Shape v = Shape::Array(x.type(), x.dims());
      v.mutable_dims().back() = *a.k;
      return Shape::Tuple({v, Shape::Array(PrimitiveType::S32, v.dims())});
    }
    default:
      return i.shape();
  }
}

}  // namespace kiln
