// scatter as a loop over its updates: read the window, combine, write it back. A window that does not lie inside
// entirely is skipped, as the operation asks.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/scalar_body.h"
#include "compiler/passes/expand/scatter_loop.h"
#include "compiler/passes/shelf/expand/indexed_form.h"

namespace kiln {

Instruction* ScatterAsLoop(Instruction* i) {
  Instruction* plain = WithoutBatching(i);
  Computation* c = i->parent();
  const int64_t n_operands = plain->operand_count() / 2;
  const Ints window = WindowOf(plain), dims = plain->operand(0)->shape().dims();
  const Ints map = *plain->attrs().scatter_dims_to_operand_dims;
  const Computation* combine = *plain->attrs().to_apply;
  const size_t rank = dims.size();
  Expr rows = ConvertTo(PrimitiveType::S64, IndexRows(plain->operand(n_operands), *plain->attrs().index_vector_dim));
  std::vector<Expr> state;
  for (int64_t k = 0; k < n_operands; ++k) state.push_back(plain->operand(k));
  state.push_back(rows);
  for (int64_t k = 0; k < n_operands; ++k) state.push_back(UpdateRows(plain, plain->operand(n_operands + 1 + k)));
  const std::vector<Expr> out =
      LoopOf(c, rows.shape().dim(0), state, [&](Expr step, const std::vector<Expr>& v) -> std::vector<Expr> {
        Computation* body = step.computation();
        Expr zero = IntegerIn(body, PrimitiveType::S64, 0), s32_zero = IntegerIn(body, step.type(), 0);
        const Expr index = v[static_cast<size_t>(n_operands)];
        std::vector<Expr> starts(rank, zero);
        Expr inside = body->AddConstant(Literal::Int(PrimitiveType::Pred, 1));
        for (size_t k = 0; k < map.size(); ++k) {
          const size_t d = static_cast<size_t>(map[k]);
          Expr column = IntegerIn(body, step.type(), static_cast<int64_t>(k));
          starts[d] = ReshapeTo(DynamicSliceOf(index, {step, column}, {1, 1}), {});
          Expr last = IntegerIn(body, PrimitiveType::S64, dims[d] - window[d]);
          inside = inside & CompareExpr(Direction::GE, starts[d], zero) & CompareExpr(Direction::LE, starts[d], last);
        }
        Ints one = window;
        one.insert(one.begin(), 1);
        std::vector<Expr> arguments, at(rank + 1, s32_zero);
        at[0] = step;
        for (int64_t k = 0; k < n_operands; ++k)
          arguments.push_back(DynamicSliceOf(v[static_cast<size_t>(k)], starts, window));
        for (int64_t k = 0; k < n_operands; ++k)
          arguments.push_back(ReshapeTo(DynamicSliceOf(v[static_cast<size_t>(n_operands + 1 + k)], at, one), window));
        const std::vector<Expr> combined = ApplyScalarBody(combine, arguments);
        std::vector<Expr> next = v;
        for (int64_t q = 0; q < n_operands; ++q) {
          const size_t k = static_cast<size_t>(q);
          next[k] = UpdateOf(v[k], SelectExpr(BroadcastTo(inside, window), combined[k], arguments[k]), starts);
        }
        return next;
      });
  if (plain != i) c->Remove(plain);
  if (!i->shape().IsTuple()) return out[0].get();
  return TupleOf(std::vector<Expr>(out.begin(), out.begin() + n_operands));
}

absl::StatusOr<bool> ScatterExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::Scatter) && IsScalarBody(*i->attrs().to_apply) &&
               i->operands().back()->shape().ElementCount() > 0;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return ScatterAsLoop(i); });
}

}  // namespace kiln
