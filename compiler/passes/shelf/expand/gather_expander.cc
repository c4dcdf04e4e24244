// gather as a loop of dynamic slices, one index vector an iteration; of a single one as the slice alone. Indices are
// clamped so that the window lies inside, as dynamic-slice does.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/expand/indexed_form.h"

namespace kiln {
namespace {

// Starts of a window from row `at` of the index matrix.
std::vector<Expr> StartsAt(Expr rows, Expr at, const Ints& map, int64_t rank) {
  std::vector<Expr> starts(static_cast<size_t>(rank), IntegerIn(rows.computation(), rows.type(), 0));
  for (size_t k = 0; k < map.size(); ++k) {
    Expr column = IntegerIn(rows.computation(), at.type(), static_cast<int64_t>(k));
    starts[static_cast<size_t>(map[k])] = ReshapeTo(DynamicSliceOf(rows, {at, column}, {1, 1}), {});
  }
  return starts;
}

}  // namespace

absl::StatusOr<bool> GatherExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::Gather) && i->shape().ElementCount() > 0 && i->operand(0)->shape().ElementCount() > 0;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Instruction* plain = WithoutBatching(i);
        Computation* c = i->parent();
        Expr rows = IndexRows(plain->operand(1), *plain->attrs().index_vector_dim);
        const Ints window = *plain->attrs().slice_sizes, map = *plain->attrs().start_index_map;
        const int64_t n = rows.shape().dim(0), rank = plain->operand(0)->shape().rank();
        Ints all = window, one = window;
        all.insert(all.begin(), n);
        one.insert(one.begin(), 1);
        Expr out = plain->operand(0);
        if (n == 1) {
          Expr zero = IntegerIn(c, PrimitiveType::S32, 0);
          out = ReshapeTo(DynamicSliceOf(plain->operand(0), StartsAt(rows, zero, map, rank), window), one);
        } else {
          Expr empty = BroadcastTo(c->AddConstant(Literal::Of(i->shape().type(), 0)), all);
          out = LoopOf(
              c, n, {plain->operand(0), rows, empty}, [&](Expr step, const std::vector<Expr>& v) -> std::vector<Expr> {
                Expr part = ReshapeTo(DynamicSliceOf(v[0], StartsAt(v[1], step, map, rank), window), one);
                std::vector<Expr> at(static_cast<size_t>(rank) + 1, IntegerIn(step.computation(), step.type(), 0));
                at[0] = step;
                return {v[0], v[1], UpdateOf(v[2], part, at)};
              })[2];
        }
        Expr result = FromRows(plain, out);
        if (plain != i) c->Remove(plain);
        return result.get();
      });
}

}  // namespace kiln
