#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {

absl::StatusOr<Shape> Cholesky(const Instruction& i, Given) {
  const Shape& x = i.operand(0)->shape();
  REQUIRE(x.IsArray() && x.rank() >= 2 && x.dim(x.rank() - 1) == x.dim(x.rank() - 2) &&
              (IsFloat(x.type()) || IsComplex(x.type())),
          "takes square matrices, not ", x.ToString(false));
  return x;
}

absl::StatusOr<Shape> TriangularSolve(const Instruction& i, Given) {
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

absl::StatusOr<Shape> Fft(const Instruction& i, Given) {
  const Shape& x = i.operand(0)->shape();
  REQUIRE(i.attrs().fft_type && i.attrs().fft_length, "fft_type or fft_length is missing");
  const FftType type = *i.attrs().fft_type;
  const Ints& length = *i.attrs().fft_length;
  const auto n = static_cast<int64_t>(length.size());
  const bool real_in = type == FftType::RFFT, real_out = type == FftType::IRFFT;
  REQUIRE(x.IsArray() && (real_in ? IsFloat(x.type()) : IsComplex(x.type())), TextOf(type), " takes ",
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

absl::StatusOr<Shape> BatchNorm(const Instruction& i, Given) {
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

}  // namespace kiln::infer
