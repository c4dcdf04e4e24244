// Convolutions of windows of 3 x 3 that move by 1, by Winograd's algorithm F(2x2, 3x3).
//
// What: results in squares of 2 x 2 come of squares of 4 x 4 of the input, which overlap:
//   y = A' [ sum over features (G g G') * (B' d B) ] A,   * element by element
// Why: 16 multiplications for 4 results of a feature where there were 36.
// How: 16 strided slices of the padded input, combined by sums; one dot, whose batches are the 16 places of a square;
//   sums of its results, interleaved. Kernels are transformed by a dot, or here, in f64, where they are constants.
// Cost: rounding errors are up to 2.3 times as large, an infinity or a NaN reaches its neighbours too, kernels take
//   16/9 of the room, and the transformed input and results lie in the arena.
// Left alone: what does not gain by the count below, other windows, groups, types other than f32 and f64, and products
//   for which the program asks for more than the default precision.
#include <array>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

constexpr int64_t kSide = 4, kStep = 2, kTaps = 3, kPlaces = kSide * kSide;

// A row of a transform: a sum of up to three terms, element `from` times `sign`.
struct Term {
  int64_t from;
  int sign;
};
using Rows = std::vector<std::vector<Term>>;
const Rows& RowsOfInput() {  // B'
  static const Rows rows = {{{0, 1}, {2, -1}}, {{1, 1}, {2, 1}}, {{2, 1}, {1, -1}}, {{1, 1}, {3, -1}}};
  return rows;
}
const Rows& RowsOfResult() {  // A'
  static const Rows rows = {{{0, 1}, {1, 1}, {2, 1}}, {{1, 1}, {2, -1}, {3, -1}}};
  return rows;
}
constexpr double kOfKernel[kSide][kTaps] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};  // G

int64_t Squares(int64_t extent) { return (extent + kStep - 1) / kStep; }

// What is read and what is made, in the terms of a convolution b01f_01io->b01f.
struct Extents {
  int64_t batch, features, results;
  std::array<int64_t, 2> in, out, squares;
  int64_t all_squares() const { return batch * squares[0] * squares[1]; }
};

Extents ExtentsOf(const Instruction* i) {
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  const Shape &x = i->operand(0)->shape(), &y = i->shape();
  Extents e{x.dim(d.input_batch), x.dim(d.input_feature), y.dim(d.output_feature), {}, {}, {}};
  for (size_t s = 0; s < 2; ++s) {
    e.in[s] = x.dim(d.input_spatial[s]);
    e.out[s] = y.dim(d.output_spatial[s]);
    e.squares[s] = Squares(e.out[s]);
  }
  return e;
}

bool Applies(const Instruction* i) {
  if (!i->Is(Opcode::Convolution) || !i->attrs().window || i->shape().HasDynamic() || i->shape().ElementCount() == 0)
    return false;
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  const PrimitiveType type = i->shape().type();
  if (type != PrimitiveType::F32 && type != PrimitiveType::F64) return false;
  if (i->operand(0)->shape().type() != type || i->operand(1)->shape().type() != type) return false;
  if (i->attrs().feature_group_count.value_or(1) != 1 || i->attrs().batch_group_count.value_or(1) != 1) return false;
  if (AsksForPrecision(i) || d.output_spatial != Ints{1, 2} || d.output_batch != 0) return false;
  if (d.input_spatial != Ints{1, 2} || d.input_batch != 0) return false;
  for (const WindowDim& w : *i->attrs().window)
    if (w.size != kTaps || w.stride != 1 || w.lhs_dilate != 1 || w.rhs_dilate != 1 || w.reversed) return false;
  return true;
}

// Multiply-adds that are saved against elements of transformed arrays, each of which is written once and read once.
bool Pays(const Instruction* i) {
  constexpr int64_t kWorthAnElement = 20, kMostBytes = 32 << 20;
  const Extents e = ExtentsOf(i);
  const int64_t squares = e.all_squares(), moved = kPlaces * squares * (e.features + e.results);
  const int64_t saved = kTaps * kTaps * e.batch * e.out[0] * e.out[1] - kPlaces * squares;
  return moved * ByteWidth(i->shape().type()) <= kMostBytes &&
         saved * e.features * e.results >= kWorthAnElement * moved;
}

class Winograd {
 public:
  explicit Winograd(Instruction* i) : i_(i), c_(i->parent()), dims_(*i->attrs().dim_labels), e_(ExtentsOf(i)) {}

  Instruction* Build() {
    Instruction* products = DotOf(Input(), Kernel(), 1, 2, 1).get();
    products->mutable_attrs().metadata = i_->attrs().metadata;
    return Result(products).get();
  }

 private:
  // Rows of a transform applied to `values`.
  static std::vector<Expr> Combined(const Rows& rows, const std::vector<Expr>& values) {
    std::vector<Expr> sums;
    for (const std::vector<Term>& row : rows) {
      Expr sum = values[static_cast<size_t>(row[0].from)];
      for (size_t t = 1; t < row.size(); ++t) {
        const Expr term = values[static_cast<size_t>(row[t].from)];
        sum = row[t].sign > 0 ? sum + term : sum - term;
      }
      sums.push_back(sum);
    }
    return sums;
  }

  // Both transforms of a square, `values[i][j]` being its element of row i and column j.
  static std::vector<std::vector<Expr>> Transformed(const Rows& rows, const std::vector<std::vector<Expr>>& values) {
    std::vector<std::vector<Expr>> half(rows.size()), whole;
    for (size_t j = 0; j < kSide; ++j) {
      std::vector<Expr> column;
      for (const auto& row : values) column.push_back(row[j]);
      const std::vector<Expr> sums = Combined(rows, column);
      for (size_t i = 0; i < rows.size(); ++i) half[i].push_back(sums[i]);
    }
    for (const auto& row : half) whole.push_back(Combined(rows, row));
    return whole;
  }

  // [16, squares, features]
  Expr Input() {
    const attr::Win& window = *i_->attrs().window;
    Ints padded = {e_.batch, 0, 0, e_.features};
    std::vector<PadDim> pads(4);
    for (size_t s = 0; s < 2; ++s) {
      padded[s + 1] = kStep * e_.squares[s] + kTaps - 1;
      pads[s + 1] = {window[s].pad_low, padded[s + 1] - e_.in[s] - window[s].pad_low, 0};
    }
    const PrimitiveType type = i_->shape().type();
    Instruction* zero = c_->AddConstant(Literal(Shape::Scalar(type)));
    Instruction* pad = c_->Add(Opcode::Pad, Shape::Array(type, padded), {i_->operand(0), zero});
    pad->mutable_attrs().padding = pads;
    std::vector<std::vector<Expr>> square(kSide);
    for (int64_t r = 0; r < kSide; ++r)
      for (int64_t c = 0; c < kSide; ++c) square[static_cast<size_t>(r)].push_back(OfEverySquare(pad, r, c));
    std::vector<Expr> places;
    for (const auto& row : Transformed(RowsOfInput(), square))
      for (const Expr& e : row) places.push_back(ReshapeTo(e, {1, e_.all_squares(), e_.features}));
    return ConcatOf(places, 0);
  }

  // Element (r, c) of every square.
  Expr OfEverySquare(Instruction* padded, int64_t r, int64_t c) {
    const int64_t rows = e_.squares[0], columns = e_.squares[1];
    Instruction* e =
        c_->Add(Opcode::Slice, Shape::Array(padded->shape().type(), {e_.batch, rows, columns, e_.features}), {padded});
    e->mutable_attrs().slice = std::vector<SliceDim>{{0, e_.batch, 1},
                                                     {r, r + kStep * (rows - 1) + 1, kStep},
                                                     {c, c + kStep * (columns - 1) + 1, kStep},
                                                     {0, e_.features, 1}};
    return e;
  }

  // [16, features, results]
  Expr Kernel() {
    const Ints order = {dims_.kernel_spatial[0], dims_.kernel_spatial[1], dims_.kernel_input, dims_.kernel_output};
    Instruction* kernel = i_->operand(1);
    if (const auto constant = ConstantKernel(kernel, order)) return c_->AddConstant(*constant);
    const PrimitiveType type = i_->shape().type();
    Literal transform(Shape::Array(type, {kPlaces, kTaps * kTaps}));
    for (int64_t p = 0; p < kPlaces; ++p)
      for (int64_t t = 0; t < kTaps * kTaps; ++t)
        transform.Set(p * kTaps * kTaps + t, {.re = kOfKernel[p / kSide][t / kTaps] * kOfKernel[p % kSide][t % kTaps]});
    const Expr taps = ReshapeTo(TransposeBy(kernel, order), {kTaps * kTaps, e_.features * e_.results});
    return ReshapeTo(DotOf(c_->AddConstant(transform), taps, 0, 1, 0), {kPlaces, e_.features, e_.results});
  }

  // The same of a constant, or of its transpose.
  std::optional<Literal> ConstantKernel(const Instruction* kernel, Ints order) const {
    if (kernel->Is(Opcode::Transpose)) {
      const Ints& from = *kernel->attrs().dimensions;
      for (int64_t& d : order) d = from[d];
      kernel = kernel->operand(0);
    }
    if (!kernel->Is(Opcode::Constant)) return std::nullopt;
    const Literal& taps = kernel->literal();
    Literal out(Shape::Array(taps.type(), {kPlaces, e_.features, e_.results}));
    const Ints all = kernel->shape().Strides(), strides = {all[order[0]], all[order[1]], all[order[2]], all[order[3]]};
    if (taps.type() == PrimitiveType::F32)
      Transform(reinterpret_cast<const float*>(taps.data()), strides, reinterpret_cast<float*>(out.mutable_data()));
    else
      Transform(reinterpret_cast<const double*>(taps.data()), strides, reinterpret_cast<double*>(out.mutable_data()));
    return out;
  }

  // `strides`: of rows, columns, features and results in `taps`.
  template <typename T>
  void Transform(const T* taps, const Ints& strides, T* out) const {
    const int64_t of_place = e_.features * e_.results;
    for (int64_t n = 0; n < of_place; ++n) {
      const T* g = taps + n / e_.results * strides[2] + n % e_.results * strides[3];
      double half[kSide][kTaps] = {};
      for (int64_t i = 0; i < kSide; ++i)
        for (int64_t b = 0; b < kTaps; ++b)
          for (int64_t a = 0; a < kTaps; ++a)
            half[i][b] += kOfKernel[i][a] * static_cast<double>(g[a * strides[0] + b * strides[1]]);
      for (int64_t i = 0; i < kSide; ++i)
        for (int64_t j = 0; j < kSide; ++j) {
          double sum = 0;
          for (int64_t b = 0; b < kTaps; ++b) sum += half[i][b] * kOfKernel[j][b];
          out[(i * kSide + j) * of_place + n] = static_cast<T>(sum);
        }
    }
  }

  // The convolution's results, of the products of all places.
  Expr Result(Instruction* products) {
    const int64_t squares = e_.all_squares(), rows = e_.squares[0], columns = e_.squares[1];
    std::vector<std::vector<Expr>> square(kSide);
    for (int64_t p = 0; p < kPlaces; ++p)
      square[static_cast<size_t>(p / kSide)].push_back(SliceOf(products, {p, 0, 0}, {p + 1, squares, e_.results}));
    std::vector<Expr> lines;
    for (const auto& row : Transformed(RowsOfResult(), square)) {
      std::vector<Expr> pair;
      for (const Expr& e : row) pair.push_back(ReshapeTo(e, {e_.batch, rows, columns, 1, e_.results}));
      lines.push_back(ReshapeTo(ConcatOf(pair, 3), {e_.batch, rows, 1, columns, kStep, e_.results}));
    }
    const Expr whole = ReshapeTo(ConcatOf(lines, 2), {e_.batch, kStep * rows, kStep * columns, e_.results});
    if (whole.shape().dims() == i_->shape().dims()) return whole;
    return SliceOf(whole, {0, 0, 0, 0}, i_->shape().dims());
  }

  Instruction* const i_;
  Computation* const c_;
  const ConvDimensionNumbers dims_;
  const Extents e_;
};

}  // namespace

absl::StatusOr<bool> WinogradConvolution(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!Applies(i) || !Pays(i) || !ctx.Take()) continue;
      i->ReplaceAllUsesWith(Winograd(i).Build());
      c->Remove(i);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
