// The QR factorisation as Householder reflections in a loop over columns.
//
// Of the custom call "Qr": a[..., m, n] -> (R above the diagonal and the reflections' vectors below it, their scales),
// the form of LAPACK's geqrf.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

Expr SumOver(Expr x, int64_t dim) {
  Computation* c = x.computation();
  return ReduceOf(x, c->AddConstant(Literal::Of(x.type(), 0)), {dim},
                  ScalarFunction(c->module(), Opcode::Add, x.type()));
}

}  // namespace

absl::StatusOr<bool> QrExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::CustomCall) && i->operand_count() == 1 &&
               (*i->attrs().custom_call_target == "Qr" || *i->attrs().custom_call_target == "QrDecomposition") &&
               IsFloat(i->operand(0)->shape().type()) && i->operand(0)->shape().rank() >= 2 && i->shape().IsTuple() &&
               i->shape().tuple().size() == 2;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        const Ints dims = i->operand(0)->shape().dims();
        const int64_t rank = static_cast<int64_t>(dims.size()), rows = dims[rank - 2], cols = dims[rank - 1];
        const int64_t steps = std::min(rows, cols);
        const Ints batch(dims.begin(), dims.end() - 2);
        Ints column = batch, row = batch, scales = batch, whole;
        column.push_back(rows);
        row.push_back(cols);
        scales.push_back(steps);
        for (int64_t d = 0; d + 1 < rank; ++d) whole.push_back(d);
        const Ints of_batch(whole.begin(), whole.end() - 1);
        Ints of_row = of_batch;
        of_row.push_back(rank - 1);
        Expr a = i->operand(0);
        Expr taus = BroadcastTo(c->AddConstant(Literal::Of(a.type(), 0)), scales);
        const std::vector<Expr> out =
            LoopOf(c, steps, {a, taus}, [&](Expr j, const std::vector<Expr>& v) -> std::vector<Expr> {
              Computation* body = j.computation();
              Expr mat = v[0];
              Expr zero = IntegerIn(body, PrimitiveType::S32, 0);
              std::vector<Expr> at(static_cast<size_t>(rank), zero);
              at[static_cast<size_t>(rank) - 1] = j;
              Ints one = dims;
              one[rank - 1] = 1;
              Expr x = ReshapeTo(DynamicSliceOf(mat, at, one), column);
              Expr place = IotaOf(body, PrimitiveType::S32, column, rank - 2), here = BroadcastTo(j, column);
              Expr below = CompareExpr(Direction::GT, place, here), on = CompareExpr(Direction::EQ, place, here);
              Expr nothing = x.Like(0);
              Expr tail = SelectExpr(below, x, nothing);
              Expr alpha = SumOver(SelectExpr(on, x, nothing), rank - 2), rest = SumOver(tail * tail, rank - 2);
              Expr norm = Unary(Opcode::Sqrt, alpha * alpha + rest);
              Expr idle = CompareExpr(Direction::EQ, rest, rest.Like(0));
              Expr beta = SelectExpr(idle, alpha, SelectExpr(alpha > 0.0, -norm, norm));
              Expr tau = SelectExpr(idle, beta.Like(0), (beta - alpha) / beta);
              Expr scale = SelectExpr(idle, beta.Like(1), alpha - beta);
              Expr vector = SelectExpr(on, x.Like(1), tail / BroadcastTo(scale, column, of_batch));
              // A -= tau * v * (v' A), in the columns behind j.
              Expr tall = BroadcastTo(vector, dims, whole);
              Expr dot = SumOver(tall * mat, rank - 2);
              Expr update = tall * BroadcastTo(dot * BroadcastTo(tau, row, of_batch), dims, of_row);
              Expr at_column = IotaOf(body, PrimitiveType::S32, dims, rank - 1), j_all = BroadcastTo(j, dims);
              Expr next = SelectExpr(CompareExpr(Direction::GT, at_column, j_all), mat - update, mat);
              Expr packed = SelectExpr(below, vector, SelectExpr(on, BroadcastTo(beta, column, of_batch), x));
              next = SelectExpr(CompareExpr(Direction::EQ, at_column, j_all), BroadcastTo(packed, dims, whole), next);
              Expr slot = CompareExpr(Direction::EQ, IotaOf(body, PrimitiveType::S32, scales, rank - 2),
                                      BroadcastTo(j, scales));
              return {next, SelectExpr(slot, BroadcastTo(tau, scales, of_batch), v[1])};
            });
        return TupleOf(out);
      });
}

}  // namespace kiln
