// Eigenvalues and vectors of symmetric matrices by Jacobi rotations: sweeps over all pairs of rows, each rotation
// making one element off the diagonal zero. Only the lower triangle is read.
//
// Of the custom call "Eigh": a[..., n, n] -> (vectors as columns, values in rising order).
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

constexpr int64_t kSweeps = 12;  // quadratic at the end: enough for f64

Expr SumOver(Expr x, const Ints& dims) {
  Computation* c = x.computation();
  return ReduceOf(x, c->AddConstant(Literal::Of(x.type(), 0)), dims,
                  ScalarFunction(c->module(), Opcode::Add, x.type()));
}

class Jacobi {
 public:
  explicit Jacobi(const Ints& dims) : dims_(dims), rank_(static_cast<int64_t>(dims.size())) {
    for (int64_t d = 0; d + 2 < rank_; ++d) of_batch_.push_back(d);
    of_row_ = of_column_ = of_batch_;
    of_row_.push_back(rank_ - 1);
    of_column_.push_back(rank_ - 2);
  }

  // Rotates rows and columns p and q of a, and columns p and q of the vectors.
  std::vector<Expr> Rotate(Expr a, Expr vectors, Expr p, Expr q) const {
    Expr app = At(a, p, p), aqq = At(a, q, q), apq = At(a, p, q);
    Expr none = CompareExpr(Direction::EQ, apq, apq.Like(0));
    Expr theta = (aqq - app) / (SelectExpr(none, apq.Like(1), apq) * 2.0);
    Expr sign = SelectExpr(theta >= 0.0, theta.Like(1), theta.Like(-1));
    Expr t = sign / (Unary(Opcode::Abs, theta) + Unary(Opcode::Sqrt, theta * theta + 1.0));
    t = SelectExpr(none, t.Like(0), t);
    Expr cosine = 1.0 / Unary(Opcode::Sqrt, t * t + 1.0), sine = t * cosine;
    a = Columns(a, p, q, cosine, sine);
    a = Rows(a, p, q, cosine, sine);
    return {a, Columns(vectors, p, q, cosine, sine)};
  }

 private:
  Expr Mask(Computation* c, int64_t dim, Expr k) const {
    return CompareExpr(Direction::EQ, IotaOf(c, PrimitiveType::S32, dims_, dim), BroadcastTo(k, dims_));
  }
  Expr At(Expr a, Expr r, Expr c) const {
    Computation* f = a.computation();
    Expr here = Mask(f, rank_ - 2, r) & Mask(f, rank_ - 1, c);
    return SumOver(SelectExpr(here, a, a.Like(0)), {rank_ - 2, rank_ - 1});
  }
  // Line k along `dim`, spread over the whole matrix again.
  Expr Line(Expr a, int64_t dim, Expr k) const {
    Expr line = SumOver(SelectExpr(Mask(a.computation(), dim, k), a, a.Like(0)), {dim});
    return BroadcastTo(line, dims_, dim == rank_ - 1 ? of_column_ : of_row_);
  }
  Expr Turn(Expr a, int64_t dim, Expr p, Expr q, Expr cosine, Expr sine) const {
    Expr c = BroadcastTo(cosine, dims_, of_batch_), s = BroadcastTo(sine, dims_, of_batch_);
    Expr x = Line(a, dim, p), y = Line(a, dim, q);
    return SelectExpr(Mask(a.computation(), dim, p), c * x - s * y,
                      SelectExpr(Mask(a.computation(), dim, q), s * x + c * y, a));
  }
  Expr Columns(Expr a, Expr p, Expr q, Expr c, Expr s) const { return Turn(a, rank_ - 1, p, q, c, s); }
  Expr Rows(Expr a, Expr p, Expr q, Expr c, Expr s) const { return Turn(a, rank_ - 2, p, q, c, s); }

  Ints dims_;
  int64_t rank_;
  Ints of_batch_, of_row_, of_column_;
};

// Rank of each value among those of its matrix: how many come before it, ties by place.
Expr Ranks(Expr values, int64_t n) {
  Ints dims = values.shape().dims(), pairs = dims, mine, theirs;
  pairs.push_back(n);
  const int64_t last = static_cast<int64_t>(dims.size()) - 1;
  for (int64_t d = 0; d < last; ++d) mine.push_back(d);
  theirs = mine;
  mine.push_back(last);
  theirs.push_back(last + 1);
  Computation* c = values.computation();
  Expr a = BroadcastTo(values, pairs, mine), b = BroadcastTo(values, pairs, theirs);
  Expr i = IotaOf(c, PrimitiveType::S32, pairs, last), j = IotaOf(c, PrimitiveType::S32, pairs, last + 1);
  Expr before =
      CompareExpr(Direction::LT, b, a) | (CompareExpr(Direction::EQ, b, a) & CompareExpr(Direction::LT, j, i));
  return SumOver(ConvertTo(PrimitiveType::S32, before), {last + 1});
}

absl::StatusOr<Instruction*> Expand(Instruction* i) {
  Computation* c = i->parent();
  Expr x = i->operand(0);
  const Ints dims = x.shape().dims();
  const int64_t rank = static_cast<int64_t>(dims.size()), n = dims.back();
  const PrimitiveType s32 = PrimitiveType::S32;
  Expr row = IotaOf(c, s32, dims, rank - 2), column = IotaOf(c, s32, dims, rank - 1);
  Ints swapped;
  for (int64_t d = 0; d < rank; ++d) swapped.push_back(d);
  std::swap(swapped[rank - 1], swapped[rank - 2]);
  x = SelectExpr(CompareExpr(Direction::GE, row, column), x, TransposeBy(x, swapped));
  Expr diagonal = CompareExpr(Direction::EQ, row, column);
  Expr identity = SelectExpr(diagonal, x.Like(1), x.Like(0));
  // The pairs of a sweep as tables.
  Ints first, second;
  for (int64_t p = 0; p < n; ++p)
    for (int64_t q = p + 1; q < n; ++q) {
      first.push_back(p);
      second.push_back(q);
    }
  const int64_t pairs = static_cast<int64_t>(first.size());
  if (pairs > 0) {
    Literal p_table(Shape::Array(s32, {pairs})), q_table(Shape::Array(s32, {pairs}));
    for (int64_t k = 0; k < pairs; ++k) {
      p_table.Set(k, Literal::Int(s32, first[k]).Get(0));
      q_table.Set(k, Literal::Int(s32, second[k]).Get(0));
    }
    const Jacobi jacobi(dims);
    const std::vector<Expr> out = LoopOf(
        c, kSweeps * pairs, {x, identity, c->AddConstant(p_table), c->AddConstant(q_table)},
        [&](Expr step, const std::vector<Expr>& v) -> std::vector<Expr> {
          Expr k = Binary(Opcode::Remainder, step, step.Like(static_cast<double>(pairs)));
          Expr p = ReshapeTo(DynamicSliceOf(v[2], {k}, {1}), {}), q = ReshapeTo(DynamicSliceOf(v[3], {k}, {1}), {});
          const std::vector<Expr> next = jacobi.Rotate(v[0], v[1], p, q);
          return {next[0], next[1], v[2], v[3]};
        });
    x = out[0];
    identity = out[1];
  }
  Expr values = SumOver(SelectExpr(diagonal, x, x.Like(0)), {rank - 1});
  // In rising order: a permutation matrix from the ranks, so that every batch is sorted at once.
  Ints of_values;
  for (int64_t d = 0; d + 1 < rank; ++d) of_values.push_back(d);
  Expr to = BroadcastTo(Ranks(values, n), dims, of_values);
  Expr permutation = SelectExpr(CompareExpr(Direction::EQ, to, column), x.Like(1), x.Like(0));
  Expr vectors = DotOf(identity, permutation, rank - 2, rank - 1, rank - 2);
  Expr sorted = SumOver(permutation * BroadcastTo(values, dims, of_values), {rank - 2});
  return TupleOf({vectors, sorted});
}

}  // namespace

absl::StatusOr<bool> EighExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::CustomCall) && i->operand_count() == 1 && *i->attrs().custom_call_target == "Eigh" &&
               IsFloat(i->operand(0)->shape().type()) && i->operand(0)->shape().rank() >= 2 && i->shape().IsTuple() &&
               i->shape().tuple().size() == 2;
      },
      Expand);
}

}  // namespace kiln
