// triangular-solve of complex systems row by row in a loop, each row's known part a product with the solved ones.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

Expr Conjugate(Expr x) {
  Expr re = Unary(Opcode::Real, x), im = -Unary(Opcode::Imag, x);
  return x.computation()->Add(Opcode::Complex, Shape::Array(x.type(), x.shape().dims()), {re.get(), im.get()});
}

Expr SwapLastTwo(Expr x) {
  Ints order;
  for (int64_t d = 0; d < x.shape().rank(); ++d) order.push_back(d);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return TransposeBy(x, order);
}

// op(A) X = B with A lower or upper triangular.
Expr Solve(Expr a, Expr b, bool lower, bool unit) {
  const int64_t rank = a.shape().rank(), n = a.shape().dims().back();
  Ints row_of_a = a.shape().dims(), row_of_b = b.shape().dims();
  row_of_a[rank - 2] = row_of_b[rank - 2] = 1;
  Expr x = BroadcastTo(b.computation()->AddConstant(Literal::Of(b.type(), 0)), b.shape().dims());
  return LoopOf(b.computation(), n, {a, b, x}, [&](Expr step, const std::vector<Expr>& v) -> std::vector<Expr> {
    Expr r = lower ? step : static_cast<double>(n - 1) - step;
    std::vector<Expr> at(rank, IntegerIn(step.computation(), PrimitiveType::S32, 0));
    at[rank - 2] = r;
    Expr coefficients = DynamicSliceOf(v[0], at, row_of_a);  // [..., 1, n]
    // Only the triangle is read: what lies outside it may be anything.
    Expr column = IotaOf(step.computation(), PrimitiveType::S32, row_of_a, rank - 1);
    Expr known = CompareExpr(lower ? Direction::LT : Direction::GT, column, BroadcastTo(r, row_of_a));
    Expr used = SelectExpr(known, coefficients, coefficients.Like(0));
    Expr right = DynamicSliceOf(v[1], at, row_of_b);
    Expr value = right - DotOf(used, v[2], rank - 2, rank - 1, rank - 2);
    if (!unit) {
      std::vector<Expr> diagonal = at;
      diagonal[rank - 1] = r;
      Ints one = row_of_a;
      one[rank - 1] = 1;
      Expr d = DynamicSliceOf(v[0], diagonal, one);
      Ints kept(one.begin(), one.end() - 1), map;
      for (int64_t k = 0; k + 1 < rank; ++k) map.push_back(k);
      value = value / BroadcastTo(ReshapeTo(d, kept), row_of_b, map);
    }
    return {v[0], v[1], UpdateOf(v[2], value, at)};
  })[2];
}

absl::StatusOr<Instruction*> Expand(Instruction* i) {
  Expr a = i->operand(0), b = i->operand(1);
  const Attributes& t = i->attrs();
  bool lower = t.lower.value_or(false);
  const bool left = t.left_side.value_or(false), unit = t.unit_diagonal.value_or(false);
  const TransposeA how = t.transpose_a.value_or(TransposeA::NO_TRANSPOSE);
  if (how == TransposeA::ADJOINT) a = Conjugate(a);
  // X op(A) = B is op(A)^T X^T = B^T.
  if ((how != TransposeA::NO_TRANSPOSE) == left) {
    a = SwapLastTwo(a);
    lower = !lower;
  }
  if (left) return Solve(a, b, lower, unit).get();
  return SwapLastTwo(Solve(a, SwapLastTwo(b), lower, unit)).get();
}

}  // namespace

absl::StatusOr<bool> TriangularSolveExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::TriangularSolve) && IsComplex(i->shape().type()); }, Expand);
}

}  // namespace kiln
