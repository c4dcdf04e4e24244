#include "compiler/hlo/infer.h"

#include <algorithm>

#define REQUIRE(cond, ...)                            \
  do {                                                \
    if (!(cond)) return InvalidArgument(__VA_ARGS__); \
  } while (0)

namespace kiln {

int64_t BitsInMemory(PrimitiveType type);
bool HasUnbounded(const Shape& shape);

// A function for each family of operations. `given` is the shape that the text states, or null where it leaves the
// shape out: some results depend on it (the element type that a product is to have, whether one array stands alone or
// in a tuple). Source: XLA's shape inference.
namespace infer {

using Given = const Shape*;

// Each in range and named once; ascending if `sorted`.
absl::Status CheckDims(const Ints& dims, int64_t rank, absl::string_view what, bool sorted = false);

inline Ints ValueOr(const std::optional<Ints>& v) { return v.value_or(Ints()); }

// Equal, or one of them not known (`?`).
inline bool SameExtent(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }
// Of every dimension, dynamic ones fitting any.
bool SameExtents(const Shape& a, const Shape& b);

// The same type, or two float types: mixed precision.
inline bool SameTypeButPrecision(PrimitiveType a, PrimitiveType b) { return a == b || (IsFloat(a) && IsFloat(b)); }
inline PrimitiveType WiderFloat(PrimitiveType a, PrimitiveType b) { return InfoOf(a).bits >= InfoOf(b).bits ? a : b; }

// One array, or a tuple of them: a result with one part is a tuple only where the text says so.
Shape OneOrTuple(std::vector<Shape> parts, Given given);

// A reduction's function: scalars for each of n arrays and n accumulators, and as many results.
absl::Status CheckReducer(const Instruction& i, const Computation* c, size_t n);
// Values of type `value` reach the reducer's parameter k.
absl::Status CheckReducerOperand(const Computation* c, size_t k, PrimitiveType value, absl::string_view what);

absl::StatusOr<Shape> Elementwise(const Instruction& i, Given given);
absl::StatusOr<Shape> Dot(const Instruction& i, Given given);
absl::StatusOr<Shape> RaggedDot(const Instruction& i, Given given);
absl::StatusOr<Shape> Convolution(const Instruction& i, Given given);
absl::StatusOr<Shape> Reduce(const Instruction& i, Given given);
absl::StatusOr<Shape> ReduceWindow(const Instruction& i, Given given);
absl::StatusOr<Shape> SelectAndScatter(const Instruction& i);
absl::StatusOr<Shape> Map(const Instruction& i);
absl::StatusOr<Shape> Sort(const Instruction& i, Given given);
absl::StatusOr<Shape> Scan(const Instruction& i);
absl::StatusOr<Shape> Gather(const Instruction& i);
absl::StatusOr<Shape> Scatter(const Instruction& i, Given given);
absl::StatusOr<Shape> BatchNorm(const Instruction& i);
absl::StatusOr<Shape> Fft(const Instruction& i);

absl::StatusOr<Shape> Call(const Instruction& i, const Computation* c, absl::string_view what);
absl::StatusOr<Shape> While(const Instruction& i);
absl::StatusOr<Shape> Conditional(const Instruction& i);

// Asynchronous and communicating operations.
absl::StatusOr<Shape> Asynchronous(const Instruction& i, Given given);
absl::StatusOr<Shape> Collective(const Instruction& i, Given given);
// Sends, receives, infeeds and outfeeds.
absl::StatusOr<Shape> Transfer(const Instruction& i, Given given);

absl::StatusOr<Shape> Elementwise(const Instruction& i, Given given) {
  const Shape& first = i.operand(0)->shape();
  if (i.Is(Opcode::Copy) && !first.IsArray()) return first;  // of everything that a tuple holds
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
      const std::string& direction = i.attrs().direction->text;
      REQUIRE(!cx || direction == "EQ" || direction == "NE", "complex numbers have no order");
      const std::string type = i.attrs().compare_type ? i.attrs().compare_type->text : "";
      REQUIRE(type.empty() || (fl || cx ? type == "FLOAT" || (fl && type == "TOTALORDER")
                                        : type == (in && !IsUnsigned(t) ? "SIGNED" : "UNSIGNED")),
              "compares ", TextOf(t), " as ", type);
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
      REQUIRE(given && given->IsArray(),
              given ? "result is not an array" : "needs a shape: its element type is not known");
      shape.set_type(given->type());
      return shape;
    }
    case Opcode::StochasticConvert: {
      REQUIRE(fl, "takes floats");
      REQUIRE(given && given->IsArray(),
              given ? "result is not an array" : "needs a shape: its element type is not known");
      const Shape& random = i.operand(1)->shape();
      REQUIRE(SameExtents(first, random) && IsUnsigned(random.type()) && InfoOf(random.type()).bits == InfoOf(t).bits,
              "random bits are ", random.ToString(false), ", not unsigned integers as wide as ", first.ToString(false));
      shape.set_type(given->type());
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

namespace {

// The type that the text prefers; by itself the wider of the operands'.
PrimitiveType ProductType(const Shape& l, const Shape& r, Given given) {
  if (given) return given->type();
  return IsFloat(l.type()) && IsFloat(r.type()) ? WiderFloat(l.type(), r.type()) : l.type();
}

}  // namespace

absl::StatusOr<Shape> Dot(const Instruction& i, Given given) {
  const Attributes& a = i.attrs();
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
    dims[d.output_spatial[s]] = WindowedExtent(x.dim(d.input_spatial[s]), w[s]);
  }
  return Shape::Array(ProductType(x, k, given), dims);
}

namespace {

bool In(const Ints& list, int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); }

// Element type of result k of a reducer with n of them.
PrimitiveType ResultType(const Computation* c, size_t n, size_t k) {
  const Shape& r = c->root()->shape();
  return r.IsTuple() && r.tuple().size() == n ? r.tuple()[k].type() : r.type();
}

// n arrays of equal extents, then n initial values.
absl::Status CheckReduced(const Instruction& i, size_t n) {
  const Shape& x = i.operand(0)->shape();
  const Computation* c = *i.attrs().to_apply;
  REQUIRE(x.IsArray(), "operand 0 is not an array");
  for (size_t k = 0; k < n; ++k) {
    const Shape &s = i.operand(k)->shape(), &init = i.operand(n + k)->shape();
    REQUIRE(s.IsArray() && SameExtents(s, x), "operand shapes differ: ", x.ToString(false), " and ", s.ToString(false));
    REQUIRE(init.rank() == 0 && init.IsArray(), "initial value ", k, " is no scalar");
    REQUIRE(SameTypeButPrecision(init.type(), s.type()), "initial value is ", TextOf(init.type()), ", operand ",
            TextOf(s.type()));
    RETURN_IF_ERROR(CheckReducerOperand(c, k, init.type(), "initial value"));
    RETURN_IF_ERROR(CheckReducerOperand(c, n + k, s.type(), "operand"));
  }
  return absl::OkStatus();
}

absl::Status CheckWindow(const attr::Win& w, const Shape& s) {
  REQUIRE(static_cast<int64_t>(w.size()) == s.rank(), "window has ", w.size(), " dimensions, operand ", s.rank());
  for (const WindowDim& d : w)
    REQUIRE(d.stride > 0 && d.lhs_dilate > 0 && d.rhs_dilate > 0 && d.size > 0,
            "window size, stride and dilations must be positive");
  return absl::OkStatus();
}

Ints Windowed(const Shape& s, const attr::Win& w) {
  Ints dims = s.dims();
  for (int64_t d = 0; d < s.rank(); ++d)
    if (dims[d] >= 0) dims[d] = WindowedExtent(dims[d], w[d]);
  return dims;
}

}  // namespace

absl::Status CheckReducer(const Instruction& i, const Computation* c, size_t n) {
  (void)i;
  REQUIRE(c->parameters().size() == 2 * n, "reducer ", c->name(), " has ", c->parameters().size(), " parameters, not ",
          2 * n);
  for (const Instruction* p : c->parameters())
    REQUIRE(p->shape().IsScalar(), "reducer parameter ", p->name(), " is no scalar");
  const Shape& r = c->root()->shape();
  REQUIRE(r.IsTuple() ? r.tuple().size() == n : n == 1 && r.IsScalar(), "reducer ", c->name(), " returns ",
          r.ToString(false), ", not ", n, n == 1 ? " scalar" : " scalars in a tuple");
  for (size_t k = 0; k < n; ++k) {
    const Shape& part = r.IsTuple() ? r.tuple()[k] : r;
    REQUIRE(part.IsScalar(), "reducer ", c->name(), " returns ", r.ToString(false), ", not scalars");
    REQUIRE(SameTypeButPrecision(part.type(), c->parameter(static_cast<int64_t>(k))->shape().type()), "reducer ",
            c->name(), " returns ", TextOf(part.type()), ", but accumulates ",
            TextOf(c->parameter(static_cast<int64_t>(k))->shape().type()));
  }
  return absl::OkStatus();
}

absl::Status CheckReducerOperand(const Computation* c, size_t k, PrimitiveType value, absl::string_view what) {
  const PrimitiveType p = c->parameter(static_cast<int64_t>(k))->shape().type();
  REQUIRE(SameTypeButPrecision(p, value), what, " is ", TextOf(value), ", reducer ", c->name(), " takes ", TextOf(p));
  return absl::OkStatus();
}

absl::StatusOr<Shape> Reduce(const Instruction& i, Given given) {
  REQUIRE(i.operand_count() >= 2 && i.operand_count() % 2 == 0, "takes as many initial values as arrays");
  REQUIRE(i.attrs().to_apply, "to_apply is missing");
  const size_t n = i.operand_count() / 2;
  const Computation* c = *i.attrs().to_apply;
  RETURN_IF_ERROR(CheckReducer(i, c, n));
  RETURN_IF_ERROR(CheckReduced(i, n));
  const Ints dims = ValueOr(i.attrs().dimensions);
  const Shape& x = i.operand(0)->shape();
  RETURN_IF_ERROR(CheckDims(dims, x.rank(), "reduced dimension"));
  std::vector<Shape> out;
  for (size_t k = 0; k < n; ++k) {
    Shape part = Shape::Array(ResultType(c, n, k), {});
    for (int64_t d = 0; d < x.rank(); ++d) {
      if (In(dims, d)) continue;
      part.mutable_dims().push_back(x.dim(d));
      part.set_dynamic(part.rank() - 1, x.is_dynamic(d));
    }
    out.push_back(std::move(part));
  }
  return OneOrTuple(std::move(out), given);
}

absl::StatusOr<Shape> ReduceWindow(const Instruction& i, Given given) {
  REQUIRE(i.operand_count() >= 2 && i.operand_count() % 2 == 0, "takes as many initial values as arrays");
  REQUIRE(i.attrs().to_apply, "to_apply is missing");
  const size_t n = i.operand_count() / 2;
  const Computation* c = *i.attrs().to_apply;
  RETURN_IF_ERROR(CheckReducer(i, c, n));
  RETURN_IF_ERROR(CheckReduced(i, n));
  const Shape& x = i.operand(0)->shape();
  const attr::Win w = i.attrs().window.value_or(attr::Win(x.rank()));
  RETURN_IF_ERROR(CheckWindow(w, x));
  std::vector<Shape> out;
  for (size_t k = 0; k < n; ++k) out.push_back(Shape::Array(ResultType(c, n, k), Windowed(x, w)));
  return OneOrTuple(std::move(out), given);
}

absl::StatusOr<Shape> SelectAndScatter(const Instruction& i) {
  const Attributes& a = i.attrs();
  REQUIRE(a.select && a.scatter, "select or scatter is missing");
  const Shape &x = i.operand(0)->shape(), &source = i.operand(1)->shape(), &init = i.operand(2)->shape();
  REQUIRE(x.IsArray() && source.IsArray() && init.IsScalar(), "takes an array, values to scatter and a scalar");
  const Computation* select = *a.select;
  REQUIRE(select->parameters().size() == 2, "select and scatter take two parameters");
  REQUIRE(select->root()->shape().Compatible(Shape::Scalar(PrimitiveType::Pred)), "select ", select->name(),
          " does not return pred[]");
  for (const Instruction* p : select->parameters())
    REQUIRE(p->shape().IsScalar() && SameTypeButPrecision(p->shape().type(), x.type()), "select ", select->name(),
            " takes ", p->shape().ToString(false), ", operand is ", x.ToString(false));
  RETURN_IF_ERROR(CheckReducer(i, *a.scatter, 1));
  RETURN_IF_ERROR(CheckReducerOperand(*a.scatter, 0, init.type(), "initial value"));
  RETURN_IF_ERROR(CheckReducerOperand(*a.scatter, 1, source.type(), "value to scatter"));
  const attr::Win w = a.window.value_or(attr::Win(x.rank()));
  RETURN_IF_ERROR(CheckWindow(w, x));
  const Shape windows = Shape::Array(x.type(), Windowed(x, w));
  REQUIRE(SameExtents(windows, source), "values to scatter are ", source.ToString(false), ", the windows make ",
          windows.ToString(false));
  return x;
}

absl::StatusOr<Shape> Map(const Instruction& i) {
  REQUIRE(i.attrs().to_apply && i.operand_count() > 0, "takes operands and to_apply");
  const Computation* c = *i.attrs().to_apply;
  REQUIRE(static_cast<int64_t>(c->parameters().size()) == i.operand_count(), "to_apply ", c->name(), " takes ",
          c->parameters().size(), " operands, not ", i.operand_count());
  REQUIRE(c->root()->shape().IsScalar(), "to_apply ", c->name(), " does not return a scalar");
  const Shape& x = i.operand(0)->shape();
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Shape &s = i.operand(k)->shape(), &p = c->parameter(k)->shape();
    REQUIRE(s.IsArray() && SameExtents(s, x), "operand shapes differ: ", x.ToString(false), " and ", s.ToString(false));
    REQUIRE(p.IsScalar() && SameTypeButPrecision(p.type(), s.type()), "operand ", k, " is ", s.ToString(false),
            ", to_apply ", c->name(), " takes ", p.ToString(false));
  }
  if (i.attrs().dimensions) {
    Ints all(x.rank());
    for (int64_t d = 0; d < x.rank(); ++d) all[d] = d;
    REQUIRE(*i.attrs().dimensions == all, "maps all dimensions of its operands in order, no others");
  }
  Shape out = x;
  out.set_layout(std::nullopt);
  out.set_type(c->root()->shape().type());
  return out;
}

absl::StatusOr<Shape> Sort(const Instruction& i, Given given) {
  REQUIRE(i.operand_count() > 0 && i.attrs().to_apply, "takes operands and a comparator");
  const Computation* c = *i.attrs().to_apply;
  REQUIRE(static_cast<int64_t>(c->parameters().size()) == 2 * i.operand_count(), "comparator ", c->name(), " has ",
          c->parameters().size(), " parameters, not ", 2 * i.operand_count());
  REQUIRE(c->root()->shape().Compatible(Shape::Scalar(PrimitiveType::Pred)), "comparator ", c->name(),
          " does not return pred[]");
  const Shape& x = i.operand(0)->shape();
  const Ints d = i.attrs().dimensions.value_or(Ints{std::max<int64_t>(x.rank() - 1, 0)});
  REQUIRE(d.size() == 1 && (x.rank() == 0 || (d[0] >= 0 && d[0] < x.rank())), "sorts one dimension of its operands");
  std::vector<Shape> out;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Shape& s = i.operand(k)->shape();
    REQUIRE(s.IsArray() && SameExtents(s, x), "operand shapes differ: ", x.ToString(false), " and ", s.ToString(false));
    for (int64_t p : {2 * k, 2 * k + 1}) {
      const Shape& parameter = c->parameter(p)->shape();
      REQUIRE(parameter.IsScalar() && SameTypeButPrecision(parameter.type(), s.type()), "comparator ", c->name(),
              " takes ", parameter.ToString(false), ", operand ", k, " is ", s.ToString(false));
    }
    out.push_back(s);
  }
  return OneOrTuple(std::move(out), given);
}

// Inputs, then carries; the function takes a slice of each input and the carries, and gives a slice of each output and
// the new carries.
absl::StatusOr<Shape> Scan(const Instruction& i) {
  REQUIRE(i.attrs().to_apply && i.attrs().scan_dimension, "to_apply or dimensions is missing");
  const Computation* c = *i.attrs().to_apply;
  const int64_t carries = i.attrs().num_carries.value_or(0), inputs = i.operand_count() - carries;
  const int64_t dim = *i.attrs().scan_dimension;
  REQUIRE(carries >= 0 && inputs >= 0, "has ", i.operand_count(), " operands, but num_carries=", carries);
  REQUIRE(static_cast<int64_t>(c->parameters().size()) == i.operand_count(), "to_apply ", c->name(), " takes ",
          c->parameters().size(), " operands, not ", i.operand_count());
  REQUIRE(inputs > 0, "scans nothing: it has no input");
  int64_t steps = -1;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    Shape s = i.operand(k)->shape();
    REQUIRE(s.IsArray(), "operand ", k, " is not an array");
    if (k < inputs) {
      REQUIRE(dim >= 0 && dim < s.rank(), "dimension ", dim, " is out of range for ", s.ToString(false));
      REQUIRE(steps < 0 || s.dim(dim) == steps, "input ", k, " has ", s.dim(dim), " steps, the first ", steps);
      steps = s.dim(dim);
      Ints dims = s.dims();
      dims.erase(dims.begin() + dim);
      s = Shape::Array(s.type(), dims);
    }
    REQUIRE(c->parameter(k)->shape().Compatible(s), "to_apply ", c->name(), " takes ",
            c->parameter(k)->shape().ToString(false), " for operand ", k, ", not ", s.ToString(false));
  }
  const Shape& root = c->root()->shape();
  const std::vector<Shape> results = root.IsTuple() ? root.tuple() : std::vector<Shape>{root};
  REQUIRE(static_cast<int64_t>(results.size()) >= carries, "to_apply ", c->name(), " returns ", results.size(),
          " results, fewer than num_carries=", carries);
  const int64_t outputs = static_cast<int64_t>(results.size()) - carries;
  std::vector<Shape> out;
  for (int64_t k = 0; k < outputs; ++k) {
    REQUIRE(results[k].IsArray() && dim <= results[k].rank(), "output ", k, " of to_apply ", c->name(), " is ",
            results[k].ToString(false), ": no dimension ", dim, " can be put into it");
    Ints dims = results[k].dims();
    dims.insert(dims.begin() + dim, steps);
    out.push_back(Shape::Array(results[k].type(), dims));
  }
  for (int64_t k = 0; k < carries; ++k) {
    const Shape& carry = i.operand(inputs + k)->shape();
    REQUIRE(results[outputs + k].Compatible(carry), "carry ", k, " is ", carry.ToString(false), ", to_apply ",
            c->name(), " returns ", results[outputs + k].ToString(false));
    out.push_back(carry);
  }
  return root.IsTuple() ? Shape::Tuple(std::move(out)) : out[0];
}

absl::StatusOr<Shape> Gather(const Instruction& i) {
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

absl::StatusOr<Shape> Call(const Instruction& i, const Computation* c, absl::string_view what) {
  REQUIRE(static_cast<int64_t>(c->parameters().size()) == i.operand_count(), what, " ", c->name(), " takes ",
          c->parameters().size(), " operands, not ", i.operand_count());
  for (int64_t k = 0; k < i.operand_count(); ++k)
    REQUIRE(c->parameter(k)->shape().Compatible(i.operand(k)->shape()), "operand ", k, " is ",
            i.operand(k)->shape().ToString(false), ", ", what, " ", c->name(), " takes ",
            c->parameter(k)->shape().ToString(false));
  return c->root()->shape();
}

absl::StatusOr<Shape> While(const Instruction& i) {
  const Attributes& a = i.attrs();
  REQUIRE(a.condition && a.body, "condition or body is missing");
  const Shape& s = i.operand(0)->shape();
  for (const Computation* c : {*a.condition, *a.body}) {
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

absl::StatusOr<Shape> Conditional(const Instruction& i) {
  const Attributes& a = i.attrs();
  REQUIRE(a.true_computation.has_value() == a.false_computation.has_value() &&
              a.true_computation.has_value() != a.branch_computations.has_value(),
          "has either true_computation and false_computation, or branch_computations");
  const std::vector<Computation*> branches = a.branch_computations
                                                 ? *a.branch_computations
                                                 : std::vector<Computation*>{*a.true_computation, *a.false_computation};
  REQUIRE(!branches.empty() && i.operand_count() == static_cast<int64_t>(branches.size()) + 1,
          "takes an index and one operand per branch (", branches.size(), "), not ", i.operand_count(), " operands");
  const Shape& sel = i.operand(0)->shape();
  REQUIRE(sel.rank() == 0 && (sel.type() == PrimitiveType::Pred || sel.type() == PrimitiveType::S32), "index is ",
          sel.ToString(false), ", not pred[] or s32[]");
  REQUIRE(sel.type() == PrimitiveType::S32 || branches.size() == 2, "pred[] chooses between 2 branches, not ",
          branches.size());
  for (size_t b = 0; b < branches.size(); ++b) {
    const Computation* c = branches[b];
    const Shape& x = i.operand(static_cast<int64_t>(b) + 1)->shape();
    REQUIRE(c->parameters().size() == 1, "branch ", c->name(), " takes ", c->parameters().size(), " parameters, not 1");
    REQUIRE(c->parameter(0)->shape().Compatible(x), "branch ", c->name(), " takes ",
            c->parameter(0)->shape().ToString(false), ", operand is ", x.ToString(false));
    REQUIRE(c->root()->shape().Compatible(branches[0]->root()->shape()), "branches return different shapes");
  }
  return branches[0]->root()->shape();
}

namespace {

std::vector<Shape> OperandShapes(const Instruction& i) {
  std::vector<Shape> out;
  for (const Instruction* o : i.operands()) out.push_back(o->shape());
  return out;
}

Shape OneOf(std::vector<Shape> shapes) { return shapes.size() == 1 ? shapes[0] : Shape::Tuple(std::move(shapes)); }

// How often the result (operand) has the operand's (result's) extent along the dimension of an all-gather
// (reduce-scatter), by the shape that the text states.
absl::StatusOr<std::vector<Shape>> Scaled(const Instruction& i, const Shape& result, bool gathers) {
  REQUIRE(i.operand_count() > 0, "takes operands");
  REQUIRE(i.attrs().dimensions && i.attrs().dimensions->size() == 1, "takes one dimension");
  const int64_t d = (*i.attrs().dimensions)[0];
  const bool one = i.operand_count() == 1;
  REQUIRE(one ? result.IsArray() : result.IsTuple() && static_cast<int64_t>(result.tuple().size()) == i.operand_count(),
          "result is ", result.ToString(false), " for ", i.operand_count(), " operands");
  std::vector<Shape> out;
  int64_t count = -1;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    Shape x = i.operand(k)->shape();
    const Shape& r = one ? result : result.tuple()[k];
    REQUIRE(x.IsArray() && d >= 0 && d < x.rank() && r.IsArray() && r.rank() == x.rank(), "dimension ", d,
            " does not fit operand ", x.ToString(false), " and result ", r.ToString(false));
    const int64_t large = gathers ? r.dim(d) : x.dim(d), small = gathers ? x.dim(d) : r.dim(d);
    if (count < 0 && small > 0) count = (large + small - 1) / small;
    if (large < 0 || small < 0) return std::vector<Shape>{result};
    if (count >= 0) {
      REQUIRE(gathers ? r.dim(d) == x.dim(d) * count : r.dim(d) == (x.dim(d) + count - 1) / std::max<int64_t>(count, 1),
              "extent ", x.dim(d), " of operand ", k, " becomes ", r.dim(d), ", but the first operand's is ",
              gathers ? "multiplied" : "divided", " by ", count);
    }
    x.mutable_dims()[d] = r.dim(d);
    out.push_back(Shape::Array(x.type(), x.dims()));
  }
  return out;
}

// ((operands), (results), ...) or, for one of each, (operand, result, ...).
absl::StatusOr<Shape> StartOf(const Instruction& i, std::vector<Shape> results, Given given, bool context) {
  std::vector<Shape> parts = {OneOf(OperandShapes(i)), OneOf(std::move(results))};
  if (given && context && given->IsTuple())
    for (size_t k = 2; k < given->tuple().size(); ++k) parts.push_back(given->tuple()[k]);
  return Shape::Tuple(std::move(parts));
}

absl::StatusOr<Shape> Part(const Instruction& i, size_t k) {
  const Shape& s = i.operand(0)->shape();
  REQUIRE(s.IsTuple() && s.tuple().size() > k, "operand is ", s.ToString(false), ", not what a start gives");
  return s.tuple()[k];
}

}  // namespace

absl::StatusOr<Shape> Collective(const Instruction& i, Given given) {
  const absl::string_view stated = "needs a shape: how many devices meet is not known here";
  switch (i.opcode()) {
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
      REQUIRE(i.attrs().to_apply, "to_apply is missing");
      [[fallthrough]];
    case Opcode::CollectiveBroadcast:
      REQUIRE(i.operand_count() > 0, "takes operands");
      for (const Instruction* o : i.operands())
        REQUIRE(o->shape().IsArray(), "takes arrays, not ", o->shape().ToString(false));
      return OneOrTuple(OperandShapes(i), given);
    case Opcode::AllGather: {
      REQUIRE(given, stated);
      ASSIGN_OR_RETURN(std::vector<Shape> results, Scaled(i, *given, true));
      return OneOf(std::move(results));
    }
    case Opcode::AllGatherStart: {
      REQUIRE(given, stated);
      if (given->IsArray()) {  // some print the result's alone
        ASSIGN_OR_RETURN(std::vector<Shape> results, Scaled(i, *given, true));
        return OneOf(std::move(results));
      }
      REQUIRE(given->IsTuple() && given->tuple().size() >= 2, "shape is not (operands, results)");
      ASSIGN_OR_RETURN(std::vector<Shape> results, Scaled(i, given->tuple()[1], true));
      return StartOf(i, std::move(results), given, true);
    }
    case Opcode::ReduceScatter: {
      REQUIRE(given, stated);
      REQUIRE(i.attrs().to_apply, "to_apply is missing");
      ASSIGN_OR_RETURN(std::vector<Shape> results, Scaled(i, *given, false));
      return OneOf(std::move(results));
    }
    case Opcode::AllToAll:
      REQUIRE(i.operand_count() > 0, "takes operands");
      if (i.attrs().dimensions) {
        REQUIRE(i.operand_count() == 1, "with dimensions takes one array, not ", i.operand_count());
        REQUIRE(i.attrs().dimensions->size() == 1, "takes one dimension");
        RETURN_IF_ERROR(CheckDims(*i.attrs().dimensions, i.operand(0)->shape().rank(), "dimension"));
        return i.operand(0)->shape();
      }
      for (const Instruction* o : i.operands())
        REQUIRE(o->shape().Compatible(i.operand(0)->shape()),
                "operand shapes differ: ", i.operand(0)->shape().ToString(false), " and ", o->shape().ToString(false));
      return Shape::Tuple(OperandShapes(i));
    case Opcode::RaggedAllToAll: {
      const Shape &in = i.operand(0)->shape(), &out = i.operand(1)->shape();
      REQUIRE(in.IsArray() && out.IsArray() && in.type() == out.type() && in.rank() == out.rank(), "input is ",
              in.ToString(false), ", output ", out.ToString(false));
      for (int64_t k = 2; k < 6; ++k) {
        const Shape& s = i.operand(k)->shape();
        REQUIRE(s.IsArray() && IsIntegral(s.type()) && s.dims() == i.operand(2)->shape().dims(), "operand ", k, " is ",
                s.ToString(false), ", not integers like ", i.operand(2)->shape().ToString(false));
      }
      return out;
    }
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart: {
      REQUIRE(i.operand_count() > 0, "takes operands");
      std::vector<Shape> results = OperandShapes(i);
      for (const Shape& s : results) REQUIRE(s.IsArray(), "takes arrays, not ", s.ToString(false));
      return i.Is(Opcode::CollectivePermute) || (given && given->IsArray())
                 ? OneOf(std::move(results))
                 : StartOf(i, std::move(results), given, true);
    }
    case Opcode::AllReduceDone:
      return i.operand(0)->shape();
    case Opcode::AllGatherDone:
    case Opcode::CollectivePermuteDone:
      return i.operand(0)->shape().IsArray() ? i.operand(0)->shape() : Part(i, 1);
    default:
      return Internal(TextOf(i.opcode()), " is no collective");
  }
}

absl::StatusOr<Shape> Asynchronous(const Instruction& i, Given given) {
  switch (i.opcode()) {
    case Opcode::AsyncStart: {
      REQUIRE(given, "needs a shape: that of its context is not known");
      REQUIRE(i.attrs().calls, "wraps no computation");
      const Computation* c = *i.attrs().calls;
      ASSIGN_OR_RETURN(Shape result, Call(i, c, "computation"));
      std::vector<Shape> parts = {Shape::Tuple({}), std::move(result)};
      for (const Instruction* p : c->parameters()) parts[0].mutable_tuple().push_back(p->shape());
      REQUIRE(given->IsTuple() && given->tuple().size() >= 2, "shape is not ((operands), results, ...)");
      for (size_t k = 2; k < given->tuple().size(); ++k) parts.push_back(given->tuple()[k]);
      return Shape::Tuple(std::move(parts));
    }
    case Opcode::AsyncUpdate:
      return i.operand(0)->shape();
    case Opcode::AsyncDone:
      return Part(i, 1);
    case Opcode::CopyStart:
      return Shape::Tuple({i.operand(0)->shape(), i.operand(0)->shape(), Shape::Scalar(PrimitiveType::U32)});
    case Opcode::CopyDone:
      return Part(i, 0);
    default:
      return Internal(TextOf(i.opcode()), " is not asynchronous");
  }
}

absl::StatusOr<Shape> Transfer(const Instruction& i, Given given) {
  const auto token = [&](int64_t k) -> absl::Status {
    REQUIRE(i.operand(k)->shape().IsToken(), "operand ", k, " is ", i.operand(k)->shape().ToString(false),
            ", not a token");
    return absl::OkStatus();
  };
  switch (i.opcode()) {
    case Opcode::Send:
      return Shape::Tuple({i.operand(0)->shape(), Shape::Scalar(PrimitiveType::U32), Shape::Token()});
    case Opcode::Recv:
      REQUIRE(given, "needs a shape: what it receives is not known");
      REQUIRE(given->IsTuple() && given->tuple().size() == 3, "shape is not (data, u32[], token[])");
      return Shape::Tuple({given->tuple()[0], Shape::Scalar(PrimitiveType::U32), Shape::Token()});
    case Opcode::SendDone:
      return Shape::Token();
    case Opcode::RecvDone: {
      ASSIGN_OR_RETURN(Shape data, Part(i, 0));
      return Shape::Tuple({std::move(data), Shape::Token()});
    }
    case Opcode::Infeed:
      RETURN_IF_ERROR(token(0));
      REQUIRE(given, "needs a shape: what it reads is not known");
      REQUIRE(given->IsTuple() && given->tuple().size() == 2, "shape is not (data, token[])");
      return Shape::Tuple({given->tuple()[0], Shape::Token()});
    case Opcode::Outfeed:
      RETURN_IF_ERROR(token(1));
      REQUIRE(!i.attrs().outfeed_shape || i.attrs().outfeed_shape->Compatible(i.operand(0)->shape()),
              "outfeed_shape is ", i.attrs().outfeed_shape->ToString(false), ", the operand ",
              i.operand(0)->shape().ToString(false));
      return Shape::Token();
    default:
      return Internal(TextOf(i.opcode()), " is no transfer");
  }
}

absl::Status CheckDims(const Ints& dims, int64_t rank, absl::string_view what, bool sorted) {
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (size_t i = 0; i < dims.size(); ++i) {
    REQUIRE(dims[i] >= 0 && dims[i] < rank, what, " ", dims[i], " is out of range for rank ", rank);
    REQUIRE(!seen[dims[i]], what, " ", dims[i], " appears twice");
    seen[dims[i]] = true;
    if (sorted && i) REQUIRE(dims[i] > dims[i - 1], what, " must be ascending");
  }
  return absl::OkStatus();
}

bool SameExtents(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int64_t d = 0; d < a.rank(); ++d)
    if (!SameExtent(a.dim(d), b.dim(d)) && !a.is_dynamic(d) && !b.is_dynamic(d)) return false;
  return true;
}

Shape OneOrTuple(std::vector<Shape> parts, Given given) {
  return parts.size() == 1 && !(given && given->IsTuple()) ? parts[0] : Shape::Tuple(std::move(parts));
}

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

absl::StatusOr<Shape> Concatenate(const Instruction& i) {
  const Attributes& a = i.attrs();
  REQUIRE(i.operand_count() > 0 && a.dimensions && a.dimensions->size() == 1, "takes operands and one dimension");
  const int64_t d = (*a.dimensions)[0];
  Shape s = i.operand(0)->shape();
  REQUIRE(s.IsArray() && d >= 0 && d < s.rank(), "dimension ", d, " is out of range for rank ", s.rank());
  for (int64_t k = 1; k < i.operand_count(); ++k) {
    const Shape& o = i.operand(k)->shape();
    REQUIRE(o.rank() == s.rank() && o.type() == s.type(), "operand ", k, " is ", o.ToString(false), ", operand 0 ",
            i.operand(0)->shape().ToString(false));
    for (int64_t e = 0; e < s.rank(); ++e)
      REQUIRE(e == d || SameExtent(o.dim(e), s.dim(e)), "operand ", k, " has extent ", o.dim(e), " in dimension ", e,
              ", operand 0 ", s.dim(e));
    s.mutable_dims()[d] = s.dim(d) < 0 || o.dim(d) < 0 ? -1 : s.dim(d) + o.dim(d);
  }
  return Shape::Array(s.type(), s.dims());
}

absl::StatusOr<Shape> BitcastConvert(const Instruction& i, Given given) {
  const Shape& x = i.operand(0)->shape();
  REQUIRE(given, "needs a shape: its element type is not known");
  REQUIRE(x.IsArray() && given->IsArray(), "takes an array");
  REQUIRE(IsComplex(x.type()) == IsComplex(given->type()), "cannot reinterpret ", TextOf(x.type()), " as ",
          TextOf(given->type()));
  int64_t from = InfoOf(x.type()).bits, to = InfoOf(given->type()).bits;
  // A truth value is a bit in StableHLO and a byte in HLO; the shapes tell which.
  const auto extent = [](const Shape& s, int64_t wide) { return s.rank() > 0 && s.dims().back() == wide; };
  if (x.type() == PrimitiveType::Pred && !extent(x, to)) from = 8;
  if (given->type() == PrimitiveType::Pred && !extent(*given, from)) to = 8;
  Ints dims = x.dims();
  if (to > from) {
    REQUIRE(!dims.empty() && SameExtent(dims.back(), to / from), "the minor dimension must be ", to / from, " to make ",
            TextOf(given->type()), " of ", TextOf(x.type()));
    dims.pop_back();
  } else if (to < from) {
    dims.push_back(from / to);
  }
  return Shape::Array(given->type(), dims);
}

absl::StatusOr<Shape> Bitcast(const Instruction& i, Given given) {
  const Shape& x = i.operand(0)->shape();
  REQUIRE(given, "needs a shape");
  REQUIRE(x.IsArray() && given->IsArray(), "takes an array");
  REQUIRE(x.ElementCount() * BitsInMemory(x.type()) == given->ElementCount() * BitsInMemory(given->type()), "operand ",
          x.ToString(false), " and result ", given->ToString(false), " take different amounts of memory");
  return *given;
}

absl::StatusOr<Shape> TriangularSolve(const Instruction& i) {
  const Shape &x = i.operand(0)->shape(), &b = i.operand(1)->shape();
  REQUIRE(x.IsArray() && b.IsArray() && x.rank() >= 2 && x.rank() == b.rank(), "operands must be matrices of one rank");
  REQUIRE(x.type() == b.type() && (IsFloat(x.type()) || IsComplex(x.type())), "operands are ", TextOf(x.type()),
          " and ", TextOf(b.type()));
  const int64_t r = x.rank();
  REQUIRE(x.dim(r - 1) == x.dim(r - 2), "the coefficient matrix ", x.ToString(false), " is not square");
  for (int64_t d = 0; d + 2 < r; ++d)
    REQUIRE(SameExtent(x.dim(d), b.dim(d)), "batch extents differ: ", x.ToString(false), " and ", b.ToString(false));
  REQUIRE(SameExtent(x.dim(r - 1), b.dim(i.attrs().left_side.value_or(false) ? r - 2 : r - 1)),
          "the coefficient matrix ", x.ToString(false), " does not fit ", b.ToString(false));
  return b;
}

}  // namespace

absl::StatusOr<Shape> BatchNorm(const Instruction& i) {
  const Shape& x = i.operand(0)->shape();
  const int64_t f = i.attrs().feature_index.value_or(-1);
  REQUIRE(x.IsArray() && IsFloat(x.type()), "operand 0 is ", x.ToString(false), ", not an array of floats");
  REQUIRE(f >= 0 && f < x.rank(), "feature_index is out of range");
  const Shape v = Shape::Array(x.type(), {x.dim(f)});
  for (int64_t k = 1; k < i.operand_count(); ++k) {
    const Shape& s = i.operand(k)->shape();
    const Shape& want = i.Is(Opcode::BatchNormGrad) && k == 4 ? x : v;
    REQUIRE(s.IsArray() && SameExtents(s, want) && SameTypeButPrecision(s.type(), x.type()), "operand ", k, " is ",
            s.ToString(false), ", not ", want.ToString(false));
  }
  return i.Is(Opcode::BatchNormInference) ? x : Shape::Tuple({x, v, v});
}

absl::StatusOr<Shape> Fft(const Instruction& i) {
  const Shape& x = i.operand(0)->shape();
  REQUIRE(i.attrs().fft_type && i.attrs().fft_length, "fft_type or fft_length is missing");
  const std::string& type = i.attrs().fft_type->text;
  const Ints& length = *i.attrs().fft_length;
  const auto n = static_cast<int64_t>(length.size());
  const bool real_in = type == "RFFT", real_out = type == "IRFFT";
  REQUIRE(x.IsArray() && (real_in ? IsFloat(x.type()) : IsComplex(x.type())), type, " takes ",
          real_in ? "real" : "complex", " numbers, not ", x.ToString(false));
  REQUIRE(n >= 1 && n <= 3 && n <= x.rank(), "transforms 1 to 3 dimensions of ", x.ToString(false), ", not ", n);
  Shape out = Shape::Array(real_in ? ComplexOf(x.type()) : real_out ? ComponentType(x.type()) : x.type(), x.dims());
  for (int64_t k = 0; k < n; ++k) {
    const int64_t d = x.rank() - n + k;
    REQUIRE(length[k] >= 0, "fft_length ", length[k], " is negative");
    const int64_t want = real_out && k == n - 1 && length[k] > 0 ? length[k] / 2 + 1 : length[k];
    REQUIRE(SameExtent(x.dim(d), want), "fft_length ", length[k], " needs extent ", want, " in dimension ", d,
            ", which has ", x.dim(d));
    if (k == n - 1) out.mutable_dims()[d] = real_in && length[k] > 0 ? length[k] / 2 + 1 : length[k];
  }
  return out;
}

namespace {

absl::StatusOr<Shape> Infer(const Instruction& i, Given given) {
  const Attributes& a = i.attrs();
  if (i.IsElementwise()) return Elementwise(i, given);
  auto operand_shape = [&](int64_t k) -> const Shape& { return i.operand(k)->shape(); };
  switch (i.opcode()) {
    case Opcode::Broadcast: {
      const Shape& x = operand_shape(0);
      REQUIRE(x.IsArray(), "takes an array");
      if (!given && x.rank() == 0) return x;
      REQUIRE(given, "needs a shape");
      REQUIRE(given->IsArray(), "gives an array");
      const Ints dims = ValueOr(a.dimensions);
      REQUIRE(static_cast<int64_t>(dims.size()) == x.rank(), "dimensions has ", dims.size(), " entries for rank ",
              x.rank());
      RETURN_IF_ERROR(CheckDims(dims, given->rank(), "broadcast dimension"));
      for (size_t k = 0; k < dims.size(); ++k)
        REQUIRE(SameExtent(x.dim(k), given->dim(dims[k])), "operand dim ", k, " is ", x.dim(k), ", result dim ",
                dims[k], " is ", given->dim(dims[k]));
      return Shape::Array(x.type(), given->dims());
    }
    case Opcode::DynamicReshape:
      for (int64_t k = 1; k < i.operand_count(); ++k)
        REQUIRE(operand_shape(k).Compatible(Shape::Scalar(PrimitiveType::S32)), "extent ", k - 1, " is ",
                operand_shape(k).ToString(false), ", not s32[]");
      REQUIRE(!given || i.operand_count() == given->rank() + 1, "takes ", i.operand_count() - 1, " extents for rank ",
              given->rank());
      [[fallthrough]];
    case Opcode::Reshape: {
      const Shape& x = operand_shape(0);
      REQUIRE(given, "needs a shape");
      REQUIRE(x.IsArray() && given->IsArray(), "takes an array");
      REQUIRE(HasUnbounded(x) || HasUnbounded(*given) || x.ElementCount() == given->ElementCount(),
              "element counts differ: ", x.ToString(false), " and ", given->ToString(false));
      return Shape::Array(x.type(), given->dims());
    }
    case Opcode::BitcastConvert:
      return BitcastConvert(i, given);
    case Opcode::Bitcast:
      return Bitcast(i, given);
    case Opcode::Transpose: {
      const Shape& x = operand_shape(0);
      const Ints p = ValueOr(a.dimensions);
      REQUIRE(x.IsArray() && static_cast<int64_t>(p.size()) == x.rank(), "dimensions has ", p.size(),
              " entries for rank ", x.rank());
      RETURN_IF_ERROR(CheckDims(p, x.rank(), "dimension"));
      Shape out = Shape::Array(x.type(), Ints(p.size()));
      for (size_t d = 0; d < p.size(); ++d) {
        out.mutable_dims()[d] = x.dim(p[d]);
        out.set_dynamic(static_cast<int64_t>(d), x.is_dynamic(p[d]));
      }
      return out;
    }
    case Opcode::Reverse: {
      REQUIRE(operand_shape(0).IsArray(), "takes an array");
      RETURN_IF_ERROR(CheckDims(ValueOr(a.dimensions), operand_shape(0).rank(), "dimension"));
      return operand_shape(0);
    }
    case Opcode::Slice: {
      Shape s = operand_shape(0);
      REQUIRE(s.IsArray() && a.slice && static_cast<int64_t>(a.slice->size()) == s.rank(),
              "slice needs one range per dimension");
      for (int64_t d = 0; d < s.rank(); ++d) {
        const SliceDim& r = (*a.slice)[d];
        REQUIRE(r.start >= 0 && r.limit >= r.start && (s.dim(d) < 0 || r.limit <= s.dim(d)) && r.stride > 0, "range [",
                r.start, ":", r.limit, ":", r.stride, "] does not fit extent ", s.dim(d), " of dimension ", d);
        s.mutable_dims()[d] = (r.limit - r.start + r.stride - 1) / r.stride;
      }
      return Shape::Array(s.type(), s.dims());
    }
    case Opcode::Pad: {
      Shape s = operand_shape(0);
      const attr::Padding p = a.padding.value_or(attr::Padding());
      REQUIRE(s.IsArray() && static_cast<int64_t>(p.size()) == s.rank(), "padding needs one entry per dimension");
      REQUIRE(operand_shape(1).IsScalar() && SameTypeButPrecision(operand_shape(1).type(), s.type()),
              "padding value is ", operand_shape(1).ToString(false), ", not ", TextOf(s.type()), "[]");
      for (int64_t d = 0; d < s.rank(); ++d) {
        REQUIRE(p[d].interior >= 0, "negative interior padding");
        if (s.dim(d) < 0) continue;
        const int64_t n = s.dim(d) + (s.dim(d) > 0 ? (s.dim(d) - 1) * p[d].interior : 0) + p[d].low + p[d].high;
        REQUIRE(n >= 0, "padding leaves dimension ", d, " a negative extent, ", n);
        s.mutable_dims()[d] = n;
      }
      return Shape::Array(s.type(), s.dims());
    }
    case Opcode::Concatenate:
      return Concatenate(i);
    case Opcode::Iota: {
      REQUIRE(given, "needs a shape");
      REQUIRE(given->IsArray() && a.iota_dimension.value_or(0) >= 0 &&
                  a.iota_dimension.value_or(0) < std::max<int64_t>(given->rank(), 1),
              "iota_dimension is out of range");
      REQUIRE(given->type() != PrimitiveType::Pred, "counts numbers, not pred");
      return *given;
    }
    case Opcode::DynamicSlice: {
      const Shape& x = operand_shape(0);
      REQUIRE(x.IsArray() && a.dynamic_slice_sizes && static_cast<int64_t>(a.dynamic_slice_sizes->size()) == x.rank(),
              "dynamic_slice_sizes needs one entry per dimension");
      for (int64_t d = 0; d < x.rank(); ++d)
        REQUIRE((*a.dynamic_slice_sizes)[d] >= 0 && (x.dim(d) < 0 || (*a.dynamic_slice_sizes)[d] <= x.dim(d)),
                "slice size ", (*a.dynamic_slice_sizes)[d], " exceeds extent ", x.dim(d));
      RETURN_IF_ERROR(CheckStarts(i, 1, x.rank()));
      return Shape::Array(x.type(), *a.dynamic_slice_sizes);
    }
    case Opcode::DynamicUpdateSlice: {
      REQUIRE(i.operand_count() >= 2, "takes an array and an update");
      const Shape &x = operand_shape(0), &u = operand_shape(1);
      REQUIRE(x.IsArray() && u.IsArray() && x.rank() == u.rank() && SameTypeButPrecision(x.type(), u.type()), "update ",
              u.ToString(false), " does not fit ", x.ToString(false));
      for (int64_t d = 0; d < x.rank(); ++d)
        REQUIRE(x.dim(d) < 0 || u.dim(d) <= x.dim(d), "update extent ", u.dim(d), " exceeds ", x.dim(d));
      RETURN_IF_ERROR(CheckStarts(i, 2, x.rank()));
      return x;
    }
    case Opcode::Gather:
      return Gather(i);
    case Opcode::Scatter:
      return Scatter(i, given);
    case Opcode::Dot:
    case Opcode::ScaledDot:
      return Dot(i, given);
    case Opcode::RaggedDot:
      return RaggedDot(i, given);
    case Opcode::Convolution:
      return Convolution(i, given);
    case Opcode::Reduce:
      return Reduce(i, given);
    case Opcode::ReduceWindow:
      return ReduceWindow(i, given);
    case Opcode::SelectAndScatter:
      return SelectAndScatter(i);
    case Opcode::Map:
      return Map(i);
    case Opcode::Sort:
      return Sort(i, given);
    case Opcode::Scan:
      return Scan(i);
    case Opcode::Tuple: {
      std::vector<Shape> out;
      for (const Instruction* o : i.operands()) out.push_back(o->shape());
      return Shape::Tuple(std::move(out));
    }
    case Opcode::GetTupleElement: {
      const Shape& t = operand_shape(0);
      REQUIRE(t.IsTuple(), "operand is ", t.ToString(false), ", not a tuple");
      REQUIRE(a.tuple_index && *a.tuple_index >= 0 && *a.tuple_index < static_cast<int64_t>(t.tuple().size()),
              "index is out of range for ", t.tuple().size(), " elements");
      return t.tuple()[*a.tuple_index];
    }
    case Opcode::Call:
      REQUIRE(a.to_apply, "to_apply is missing");
      return Call(i, *a.to_apply, "computation");
    case Opcode::Fusion:
      REQUIRE(a.calls, "calls is missing");
      return Call(i, *a.calls, "fusion computation");
    case Opcode::While:
      return While(i);
    case Opcode::Conditional:
      return Conditional(i);
    case Opcode::Cholesky: {
      const Shape& x = operand_shape(0);
      REQUIRE(x.IsArray() && x.rank() >= 2 && x.dim(x.rank() - 1) == x.dim(x.rank() - 2) &&
                  (IsFloat(x.type()) || IsComplex(x.type())),
              "takes square matrices, not ", x.ToString(false));
      return x;
    }
    case Opcode::AddDependency:
      REQUIRE(operand_shape(1).IsToken(), "operand 1 is ", operand_shape(1).ToString(false), ", not a token");
      return operand_shape(0);
    case Opcode::OptimizationBarrier:
    case Opcode::Domain:
      return operand_shape(0);
    case Opcode::TriangularSolve:
      return TriangularSolve(i);
    case Opcode::AfterAll:
      for (int64_t k = 0; k < i.operand_count(); ++k)
        REQUIRE(operand_shape(k).IsToken(), "operand ", k, " is ", operand_shape(k).ToString(false), ", not a token");
      return Shape::Token();
    case Opcode::GetDimensionSize: {
      const Ints d = ValueOr(a.dimensions);
      REQUIRE(operand_shape(0).IsArray() && d.size() == 1 && d[0] >= 0 && d[0] < operand_shape(0).rank(),
              "names one dimension of its operand");
      return Shape::Scalar(PrimitiveType::S32);
    }
    case Opcode::SetDimensionSize: {
      const Ints d = ValueOr(a.dimensions);
      Shape s = operand_shape(0);
      REQUIRE(s.IsArray() && d.size() == 1 && d[0] >= 0 && d[0] < s.rank(), "names one dimension of its operand");
      REQUIRE(operand_shape(1).Compatible(Shape::Scalar(PrimitiveType::S32)), "size is ",
              operand_shape(1).ToString(false), ", not s32[]");
      s.set_dynamic(d[0], true);
      return s;
    }
    case Opcode::BatchNormTraining:
    case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference:
      return BatchNorm(i);
    case Opcode::Fft:
      return Fft(i);
    case Opcode::TopK: {
      const Shape& x = operand_shape(0);
      REQUIRE(x.IsArray() && x.rank() >= 1 && a.k && *a.k >= 0 && *a.k <= x.dims().back(), "k is out of range");
      Shape v = Shape::Array(x.type(), x.dims());
      v.mutable_dims().back() = *a.k;
      return Shape::Tuple({v, Shape::Array(PrimitiveType::S32, v.dims())});
    }
    case Opcode::Rng:
      REQUIRE(given, "needs a shape");
      REQUIRE(i.operand_count() >= 2, "takes 2 operands, not ", i.operand_count());
      for (int64_t k = 0; k < 2; ++k)  // what follows, old programs say of the shape
        REQUIRE(operand_shape(k).IsScalar() && SameTypeButPrecision(operand_shape(k).type(), given->type()), "operand ",
                k, " is ", operand_shape(k).ToString(false), ", the result ", given->ToString(false));
      return *given;
    case Opcode::RngBitGenerator:
      REQUIRE(given, "needs a shape");
      REQUIRE(!given->IsTuple() || (given->tuple().size() == 2 && given->tuple()[0].Compatible(operand_shape(0))),
              "shape is not (", operand_shape(0).ToString(false), ", bits)");
      return *given;
    case Opcode::RngGetAndUpdateState:
      return Shape::Array(PrimitiveType::U64, {2});
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
      return Shape::Scalar(PrimitiveType::U32);
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone:
    case Opcode::CopyStart:
    case Opcode::CopyDone:
      return Asynchronous(i, given);
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::Infeed:
    case Opcode::Outfeed:
      return Transfer(i, given);
    default:
      if (i.HasTrait(kiln::Collective)) return infer::Collective(i, given);
      REQUIRE(given, "needs a shape");
      return *given;
  }
}

}  // namespace
}  // namespace infer

bool HasUnbounded(const Shape& s) {
  return std::any_of(s.dims().begin(), s.dims().end(), [](int64_t d) { return d < 0; }) ||
         std::any_of(s.tuple().begin(), s.tuple().end(), HasUnbounded);
}

int64_t BitsInMemory(PrimitiveType t) { return t == PrimitiveType::Pred ? 8 : InfoOf(t).bits; }

int64_t WindowedExtent(int64_t input, const WindowDim& w) {
  const int64_t base = input == 0 ? 0 : (input - 1) * w.lhs_dilate + 1;
  const int64_t padded = base + w.pad_low + w.pad_high;
  const int64_t win = w.DilatedSize();
  if (padded < win || padded <= 0) return (padded == 0 && win == 0) ? 1 : 0;
  return (padded - win) / w.stride + 1;
}

absl::StatusOr<Shape> InferShape(const Instruction& i) { return infer::Infer(i, &i.shape()); }

absl::StatusOr<Shape> InferOmittedShape(const Instruction& i) {
  ASSIGN_OR_RETURN(Shape s, infer::Infer(i, nullptr));
  s.ClearLayouts();
  return s;
}

}  // namespace kiln
