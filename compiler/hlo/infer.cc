#include "compiler/hlo/infer_rules.h"

namespace kiln {
namespace infer {

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
