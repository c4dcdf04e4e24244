// Random linear algebra in every variant: sides, triangles, transposes, diagonals of ones or powers of two.
#include "tests/random/growth.h"

namespace kiln {
namespace {

PrimitiveType AnyField(Growth& g) {
  const PrimitiveType types[] = {PrimitiveType::F32, PrimitiveType::F32, PrimitiveType::F64, PrimitiveType::C64,
                                 PrimitiveType::C128};
  return types[g.Pick(std::size(types))];
}

struct Square {
  Expr row, column;  // of each element
  Ints dims;
};

Square SquareOf(Computation* c, Ints dims, int64_t n) {
  dims.push_back(n);
  dims.push_back(n);
  const auto rank = static_cast<int64_t>(dims.size());
  return {IotaOf(c, PrimitiveType::S32, dims, rank - 2), IotaOf(c, PrimitiveType::S32, dims, rank - 1), dims};
}

Expr Small(Growth& g, Computation* c, PrimitiveType t, const Ints& dims) {
  Expr x = g.Fit(c, t, dims);
  if (IsComplex(t)) return x;
  return Binary(Opcode::Remainder, x, x.Like(3));  // inverses of triangles grow with their elements
}

// The elements of one triangle, without the diagonal. Of a large one those of blocks of four beside the diagonal, so
// that its inverse stays small.
Expr Triangle(const Square& q, int64_t n, Expr x, bool lower) {
  Expr inside = CompareExpr(lower ? Direction::GT : Direction::LT, q.row, q.column);
  if (n > 4) inside = inside & (q.row / q.row.Like(4) == q.column / q.row.Like(4));
  return SelectExpr(inside, x, x.Like(0));
}

Ints AnyBatch(Growth& g) {
  Ints batch;
  const int64_t rank = g.Between(0, 2);
  for (int64_t k = 0; k < rank; ++k) batch.push_back(g.Between(1, 4));
  return batch;
}

// One triangle is read, the other holds anything; the diagonal too, where it counts as ones.
std::optional<Expr> Solved(Growth& g, Computation* c, Expr) {
  const PrimitiveType t = AnyField(g);
  const Ints batch = AnyBatch(g);
  const int64_t n = g.Chance(12) ? g.Between(17, 40) : g.Between(1, 6), m = g.Between(1, 7);
  const bool left = g.Chance(50), lower = g.Chance(50), unit = g.Chance(40);
  const Square q = SquareOf(c, batch, n);
  if (Product(q.dims) > g.most) return std::nullopt;
  Expr x = Small(g, c, t, q.dims);
  Expr triangle = Triangle(q, n, x, lower);
  Expr diagonal = SelectExpr(g.Fit(c, PrimitiveType::Pred, q.dims), x.Like(1), x.Like(g.Chance(50) ? -1 : 0.5));
  Expr a = SelectExpr(q.row == q.column, unit ? x : diagonal, triangle);
  // What is not read.
  if (g.Chance(60)) a = SelectExpr(CompareExpr(lower ? Direction::LT : Direction::GT, q.row, q.column), x.Like(3), a);
  Ints dims = batch;
  dims.insert(dims.end(), {left ? n : m, left ? m : n});
  Attributes attrs;
  attrs.left_side = left;
  attrs.lower = lower;
  attrs.unit_diagonal = unit;
  const TransposeA ways[] = {TransposeA::NO_TRANSPOSE, TransposeA::TRANSPOSE, TransposeA::ADJOINT};
  attrs.transpose_a = ways[g.Pick(3)];
  Expr b = g.Fit(c, t, dims);
  if (g.Chance(30)) b = b + g.Fit(c, t, dims);
  Expr solution = *Inferred(c, Opcode::TriangularSolve, {a, b}, attrs);
  if (g.Chance(30)) solution = solution * g.Fit(c, t, dims);
  return g.Rounded(solution);
}

// Of L times its adjoint, the triangle that is not read filled with anything.
std::optional<Expr> Factored(Growth& g, Computation* c, Expr) {
  const PrimitiveType t = AnyField(g);
  const Ints batch = AnyBatch(g);
  const int64_t n = g.Chance(12) ? g.Between(17, 36) : g.Between(1, 6);
  const auto k = static_cast<int64_t>(batch.size());
  const Square q = SquareOf(c, batch, n);
  if (Product(q.dims) > g.most) return std::nullopt;
  Expr x = Small(g, c, t, q.dims);
  Expr l = SelectExpr(q.row == q.column, x.Like(static_cast<double>(g.Between(1, 2))), Triangle(q, n, x, true));
  Expr adjoint = l;
  if (IsComplex(t)) {
    Expr im = Unary(Opcode::Imag, l);
    adjoint = c->Add(Opcode::Complex, l.shape(), {Unary(Opcode::Real, l).get(), (-im).get()});
  }
  Ints order(static_cast<size_t>(k));
  for (int64_t d = 0; d < k; ++d) order[static_cast<size_t>(d)] = d;
  order.insert(order.end(), {k + 1, k});
  Expr a = DotOf(l, TransposeBy(adjoint, order), k, k + 1, k);
  const bool lower = g.Chance(50);
  Expr unread = CompareExpr(lower ? Direction::LT : Direction::GT, q.row, q.column);
  if (g.Chance(60)) a = SelectExpr(unread, a.Like(3), a);
  Attributes attrs;
  attrs.lower = lower;
  Expr f = *Inferred(c, Opcode::Cholesky, {a}, attrs);
  return g.Rounded(SelectExpr(unread, f.Like(0), f));
}

}  // namespace

std::vector<Maker> LinearMakers() { return {{4, Solved, true}, {3, Factored, true}}; }

}  // namespace kiln
