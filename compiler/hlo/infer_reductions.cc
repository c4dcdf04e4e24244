#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {

namespace {

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
  for (int64_t k = 0; k < s.rank(); ++k) {
    const WindowDim& d = w[k];
    REQUIRE(d.stride > 0 && d.lhs_dilate > 0 && d.rhs_dilate > 0 && d.size > 0,
            "window size, stride and dilations must be positive");
    REQUIRE(WindowFits(s.dim(k), d), "window or padding of dimension ", k, " is too large");
  }
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

// Arrays, as many initial values, and a reducer that takes both: how many arrays.
absl::StatusOr<size_t> CheckArraysAndReducer(const Instruction& i) {
  REQUIRE(i.operand_count() >= 2 && i.operand_count() % 2 == 0, "takes as many initial values as arrays");
  REQUIRE(i.attrs().to_apply, "to_apply is missing");
  const size_t n = i.operand_count() / 2;
  RETURN_IF_ERROR(CheckReducer(i, *i.attrs().to_apply, n));
  RETURN_IF_ERROR(CheckReduced(i, n));
  return n;
}

absl::StatusOr<Shape> Reduce(const Instruction& i, Given given) {
  ASSIGN_OR_RETURN(const size_t n, CheckArraysAndReducer(i));
  const Computation* c = *i.attrs().to_apply;
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
  ASSIGN_OR_RETURN(const size_t n, CheckArraysAndReducer(i));
  const Computation* c = *i.attrs().to_apply;
  const Shape& x = i.operand(0)->shape();
  const attr::Win w = i.attrs().window.value_or(attr::Win(x.rank()));
  RETURN_IF_ERROR(CheckWindow(w, x));
  std::vector<Shape> out;
  for (size_t k = 0; k < n; ++k) out.push_back(Shape::Array(ResultType(c, n, k), Windowed(x, w)));
  return OneOrTuple(std::move(out), given);
}

absl::StatusOr<Shape> SelectAndScatter(const Instruction& i, Given) {
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

absl::StatusOr<Shape> Map(const Instruction& i, Given) {
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

absl::StatusOr<Shape> TopK(const Instruction& i, Given) {
  const Attributes& a = i.attrs();
  const Shape& x = i.operand(0)->shape();
  REQUIRE(x.IsArray() && x.rank() >= 1 && a.k && *a.k >= 0 && *a.k <= x.dims().back(), "k is out of range");
  Shape v = Shape::Array(x.type(), x.dims());
  v.mutable_dims().back() = *a.k;
  return Shape::Tuple({v, Shape::Array(PrimitiveType::S32, v.dims())});
}

// Inputs, then carries; the function takes a slice of each input and the carries, and gives a slice of each output and
// the new carries.
absl::StatusOr<Shape> Scan(const Instruction& i, Given) {
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

}  // namespace kiln::infer
