// scan as a loop: one slice of each input a step, outputs written in place, carries in the loop's state.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

std::vector<Expr> StartsAt(Expr at, int64_t rank, int64_t dim) {
  std::vector<Expr> starts(rank, IntegerIn(at.computation(), PrimitiveType::S32, 0));
  starts[dim] = at;
  return starts;
}

Instruction* Expand(Instruction* scan) {
  Computation* c = scan->parent();
  const int64_t dim = scan->attrs().scan_dimension.value_or(0), carries = scan->attrs().num_carries.value_or(0);
  const int64_t inputs = scan->operand_count() - carries;
  const std::vector<Shape> results =
      scan->shape().IsTuple() ? scan->shape().tuple() : std::vector<Shape>{scan->shape()};
  const int64_t outputs = static_cast<int64_t>(results.size()) - carries;
  const bool reverse = scan->attrs().is_reverse.value_or(false);
  const int64_t steps = inputs ? scan->operand(0)->shape().dim(dim) : outputs ? results[0].dim(dim) : 0;
  Computation* step = *scan->attrs().to_apply;
  std::vector<Expr> state(scan->operands().begin(), scan->operands().end());
  for (int64_t k = 0; k < outputs; ++k)
    state.push_back(BroadcastTo(c->AddConstant(Literal::Of(results[k].type(), 0)), results[k].dims()));
  const auto body_of = [&](Expr s, const std::vector<Expr>& values) {
    Computation* body = s.computation();
    Expr at = reverse ? static_cast<double>(steps - 1) - s : s;
    std::vector<Instruction*> arguments;
    for (int64_t k = 0; k < inputs; ++k) {
      Ints sizes = values[k].shape().dims();
      sizes[dim] = 1;
      Expr slice = DynamicSliceOf(values[k], StartsAt(at, values[k].shape().rank(), dim), sizes);
      sizes.erase(sizes.begin() + dim);
      arguments.push_back(ReshapeTo(slice, sizes).get());
    }
    for (int64_t k = 0; k < carries; ++k) arguments.push_back(values[inputs + k].get());
    Instruction* call = body->Add(Opcode::Call, step->root()->shape(), arguments);
    call->mutable_attrs().to_apply = step;
    std::vector<Expr> parts = {call};
    if (call->shape().IsTuple()) {
      parts.clear();
      for (size_t k = 0; k < call->shape().tuple().size(); ++k) {
        Instruction* g = body->Add(Opcode::GetTupleElement, call->shape().tuple()[k], {call});
        g->mutable_attrs().tuple_index = static_cast<int64_t>(k);
        parts.emplace_back(g);
      }
    }
    std::vector<Expr> next(values.begin(), values.begin() + inputs);
    for (int64_t k = 0; k < carries; ++k) next.push_back(parts[outputs + k]);
    for (int64_t k = 0; k < outputs; ++k) {
      Ints one = parts[k].shape().dims();
      one.insert(one.begin() + dim, 1);
      Expr whole = values[inputs + carries + k];
      next.push_back(UpdateOf(whole, ReshapeTo(parts[k], one), StartsAt(at, whole.shape().rank(), dim)));
    }
    return next;
  };
  // A body that slices empty inputs would be no legal one, even if it never ran.
  const std::vector<Expr> final = steps == 0 ? state : LoopOf(c, steps, state, body_of);
  std::vector<Expr> out(final.begin() + inputs + carries, final.end());
  out.insert(out.end(), final.begin() + inputs, final.begin() + inputs + carries);
  if (!scan->shape().IsTuple()) return out[0].get();
  std::vector<Instruction*> operands;
  for (const Expr& e : out) operands.push_back(e.get());
  return c->Add(Opcode::Tuple, scan->shape(), operands);
}

}  // namespace

absl::StatusOr<bool> ScanExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::Scan); }, Expand);
}

}  // namespace kiln
