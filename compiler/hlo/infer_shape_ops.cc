#include <algorithm>

#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {

absl::StatusOr<Shape> Broadcast(const Instruction& i, Given given) {
  const Shape& x = i.operand(0)->shape();
  REQUIRE(x.IsArray(), "takes an array");
  if (!given && x.rank() == 0) return x;
  REQUIRE(given, "needs a shape");
  REQUIRE(given->IsArray(), "gives an array");
  const Ints dims = ValueOr(i.attrs().dimensions);
  REQUIRE(static_cast<int64_t>(dims.size()) == x.rank(), "dimensions has ", dims.size(), " entries for rank ",
          x.rank());
  RETURN_IF_ERROR(CheckDims(dims, given->rank(), "broadcast dimension"));
  for (size_t k = 0; k < dims.size(); ++k)
    REQUIRE(SameExtent(x.dim(k), given->dim(dims[k])), "operand dim ", k, " is ", x.dim(k), ", result dim ", dims[k],
            " is ", given->dim(dims[k]));
  return Shape::Array(x.type(), given->dims());
}

absl::StatusOr<Shape> Reshape(const Instruction& i, Given given) {
  const Shape& x = i.operand(0)->shape();
  REQUIRE(given, "needs a shape");
  REQUIRE(x.IsArray() && given->IsArray(), "takes an array");
  REQUIRE(HasUnbounded(x) || HasUnbounded(*given) || x.ElementCount() == given->ElementCount(),
          "element counts differ: ", x.ToString(false), " and ", given->ToString(false));
  return Shape::Array(x.type(), given->dims());
}

absl::StatusOr<Shape> DynamicReshape(const Instruction& i, Given given) {
  for (int64_t k = 1; k < i.operand_count(); ++k)
    REQUIRE(i.operand(k)->shape().Compatible(Shape::Scalar(PrimitiveType::S32)), "extent ", k - 1, " is ",
            i.operand(k)->shape().ToString(false), ", not s32[]");
  REQUIRE(!given || i.operand_count() == given->rank() + 1, "takes ", i.operand_count() - 1, " extents for rank ",
          given->rank());
  return Reshape(i, given);
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

absl::StatusOr<Shape> Transpose(const Instruction& i, Given) {
  const Shape& x = i.operand(0)->shape();
  const Ints p = ValueOr(i.attrs().dimensions);
  REQUIRE(x.IsArray() && static_cast<int64_t>(p.size()) == x.rank(), "dimensions has ", p.size(), " entries for rank ",
          x.rank());
  RETURN_IF_ERROR(CheckDims(p, x.rank(), "dimension"));
  Shape out = Shape::Array(x.type(), Ints(p.size()));
  for (size_t d = 0; d < p.size(); ++d) {
    out.mutable_dims()[d] = x.dim(p[d]);
    out.set_dynamic(static_cast<int64_t>(d), x.is_dynamic(p[d]));
  }
  return out;
}

absl::StatusOr<Shape> Reverse(const Instruction& i, Given) {
  REQUIRE(i.operand(0)->shape().IsArray(), "takes an array");
  RETURN_IF_ERROR(CheckDims(ValueOr(i.attrs().dimensions), i.operand(0)->shape().rank(), "dimension"));
  return i.operand(0)->shape();
}

absl::StatusOr<Shape> Slice(const Instruction& i, Given) {
  const Attributes& a = i.attrs();
  Shape s = i.operand(0)->shape();
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

absl::StatusOr<Shape> Pad(const Instruction& i, Given) {
  Shape s = i.operand(0)->shape();
  const attr::Padding p = i.attrs().padding.value_or(attr::Padding());
  REQUIRE(s.IsArray() && static_cast<int64_t>(p.size()) == s.rank(), "padding needs one entry per dimension");
  REQUIRE(i.operand(1)->shape().IsScalar() && SameTypeButPrecision(i.operand(1)->shape().type(), s.type()),
          "padding value is ", i.operand(1)->shape().ToString(false), ", not ", TextOf(s.type()), "[]");
  for (int64_t d = 0; d < s.rank(); ++d) {
    REQUIRE(p[d].interior >= 0, "negative interior padding");
    if (s.dim(d) < 0) continue;
    int64_t n = 0;
    const bool fits = !__builtin_mul_overflow(std::max<int64_t>(s.dim(d) - 1, 0), p[d].interior, &n) &&
                      !__builtin_add_overflow(n, s.dim(d), &n) && !__builtin_add_overflow(n, p[d].low, &n) &&
                      !__builtin_add_overflow(n, p[d].high, &n);
    REQUIRE(fits, "padding gives dimension ", d, " more elements than can be counted");
    REQUIRE(n >= 0, "padding leaves dimension ", d, " a negative extent, ", n);
    s.mutable_dims()[d] = n;
  }
  return Shape::Array(s.type(), s.dims());
}

absl::StatusOr<Shape> Concatenate(const Instruction& i, Given) {
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

absl::StatusOr<Shape> Iota(const Instruction& i, Given given) {
  const Attributes& a = i.attrs();
  REQUIRE(given, "needs a shape");
  REQUIRE(given->IsArray() && a.iota_dimension.value_or(0) >= 0 &&
              a.iota_dimension.value_or(0) < std::max<int64_t>(given->rank(), 1),
          "iota_dimension is out of range");
  REQUIRE(given->type() != PrimitiveType::Pred, "counts numbers, not pred");
  return *given;
}

absl::StatusOr<Shape> GetDimensionSize(const Instruction& i, Given) {
  const Ints d = ValueOr(i.attrs().dimensions);
  REQUIRE(i.operand(0)->shape().IsArray() && d.size() == 1 && d[0] >= 0 && d[0] < i.operand(0)->shape().rank(),
          "names one dimension of its operand");
  return Shape::Scalar(PrimitiveType::S32);
}

absl::StatusOr<Shape> SetDimensionSize(const Instruction& i, Given) {
  const Ints d = ValueOr(i.attrs().dimensions);
  Shape s = i.operand(0)->shape();
  REQUIRE(s.IsArray() && d.size() == 1 && d[0] >= 0 && d[0] < s.rank(), "names one dimension of its operand");
  REQUIRE(i.operand(1)->shape().Compatible(Shape::Scalar(PrimitiveType::S32)), "size is ",
          i.operand(1)->shape().ToString(false), ", not s32[]");
  s.set_dynamic(d[0], true);
  return s;
}

}  // namespace kiln::infer
