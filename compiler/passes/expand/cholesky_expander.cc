// cholesky of complex matrices column by column in a loop.
#include <limits>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

Expr MakeComplex(PrimitiveType t, Expr re, Expr im) {
  return re.computation()->Add(Opcode::Complex, Shape::Array(t, re.shape().dims()), {re.get(), im.get()});
}

Expr Adjoint(Expr x) {
  Ints order;
  for (int64_t d = 0; d < x.shape().rank(); ++d) order.push_back(d);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  Expr y = TransposeBy(x, order);
  return MakeComplex(y.type(), Unary(Opcode::Real, y), -Unary(Opcode::Imag, y));
}

absl::StatusOr<Instruction*> Expand(Instruction* i) {
  Expr a = i->operand(0);
  Computation* c = i->parent();
  const bool lower = i->attrs().lower.value_or(false);
  if (!lower) a = Adjoint(a);  // the upper triangle becomes the lower one
  const int64_t rank = a.shape().rank(), n = a.shape().dims().back();
  const PrimitiveType t = a.type();
  Ints column = a.shape().dims(), row = a.shape().dims();
  column[rank - 1] = row[rank - 2] = 1;
  Expr factor = BroadcastTo(c->AddConstant(Literal::Of(t, 0)), a.shape().dims());
  Expr out = LoopOf(c, n, {a, factor}, [&](Expr j, const std::vector<Expr>& v) -> std::vector<Expr> {
    Computation* body = j.computation();
    Expr zero = IntegerIn(body, PrimitiveType::S32, 0);
    std::vector<Expr> at_column(rank, zero), at_row(rank, zero);
    at_column[rank - 1] = j;
    at_row[rank - 2] = j;
    // Column j of A less the part that the columns before it explain: L * adjoint(row j of L).
    Expr left = DynamicSliceOf(v[1], at_row, row);  // [..., 1, n]
    Expr rest = DynamicSliceOf(v[0], at_column, column) - DotOf(v[1], Adjoint(left), rank - 2, rank - 1, rank - 2);
    Ints one = column;
    one[rank - 2] = 1;
    Expr pivot = Unary(Opcode::Real, DynamicSliceOf(rest, at_row, one));
    Expr root =
        SelectExpr(pivot > 0.0, Unary(Opcode::Sqrt, pivot), pivot.Like(std::numeric_limits<double>::quiet_NaN()));
    Ints kept(one.begin(), one.end() - 2), map;
    for (int64_t d = 0; d + 2 < rank; ++d) map.push_back(d);
    auto spread = [&](Expr x) { return BroadcastTo(ReshapeTo(x, kept), column, map); };
    Expr real_root = spread(root);
    Expr scaled = MakeComplex(t, Unary(Opcode::Real, rest) / real_root, Unary(Opcode::Imag, rest) / real_root);
    Expr at = IotaOf(body, PrimitiveType::S32, column, rank - 2), where = BroadcastTo(j, column);
    Expr diagonal = MakeComplex(t, real_root, real_root.Like(0));
    Expr value = SelectExpr(CompareExpr(Direction::GT, at, where), scaled,
                            SelectExpr(CompareExpr(Direction::EQ, at, where), diagonal, scaled.Like(0)));
    return {v[0], UpdateOf(v[1], value, at_column)};
  })[1];
  return (lower ? out : Adjoint(out)).get();
}

}  // namespace

absl::StatusOr<bool> CholeskyExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::Cholesky) && IsComplex(i->shape().type()); }, Expand);
}

}  // namespace kiln
