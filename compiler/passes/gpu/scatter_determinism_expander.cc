// Scatters whose result depends on the order of updates get one: the order of the updates.
//
// Scatters of single elements sort their updates by target (stably), combine the runs of one target from the first to
// the last by a segmented prefix reduction, and scatter the last of each run; others become loops. Integer sums and
// other combinations that no order can change stay as they are.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/scalar_body.h"
#include "compiler/passes/expand/scatter_loop.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

// One array of one dimension, one element an update: scatter of u[n] at indices [n, 1].
bool Simple(const Instruction* i) {
  const Attributes& a = i->attrs();
  return i->operand_count() == 3 && i->operand(0)->shape().rank() == 1 && i->operand(2)->shape().rank() == 1 &&
         a.update_window_dims->empty() && *a.inserted_window_dims == Ints{0} &&
         *a.scatter_dims_to_operand_dims == Ints{0} && !a.input_batching_dims &&
         (*a.to_apply)->root()->operand_count() == 2 && (*a.to_apply)->root()->HasTrait(Commutative);
}

Instruction* Sorted(Instruction* i) {
  Computation* c = i->parent();
  Module* m = c->module();
  const int64_t n = i->operand(2)->shape().dim(0), extent = i->operand(0)->shape().dim(0);
  const PrimitiveType t = i->operand(2)->shape().type();
  // Targets outside the array go to one place behind it, which is skipped at the end.
  Expr target = ConvertTo(PrimitiveType::S64, ReshapeTo(i->operand(1), {n}));
  Expr outside = (target < 0.0) | (target >= static_cast<double>(extent));
  target = SelectExpr(outside, target.Like(static_cast<double>(extent)), target);
  Computation* less = m->AddComputation("by_target");
  const Shape s64 = Shape::Scalar(PrimitiveType::S64), value = Shape::Scalar(t);
  Instruction *a = less->AddParameter(0, s64, "a"), *b = less->AddParameter(1, s64, "b");
  less->AddParameter(2, value, "u");
  less->AddParameter(3, value, "v");
  less->set_root(CompareExpr(Direction::LT, a, b).get());
  Instruction* sort =
      c->Add(Opcode::Sort, Shape::Tuple({target.shape(), i->operand(2)->shape()}), {target.get(), i->operand(2)});
  sort->mutable_attrs().dimensions = Ints{0};
  sort->mutable_attrs().is_stable = true;
  sort->mutable_attrs().to_apply = less;
  Expr key = PartOf(sort, 0), sum = PartOf(sort, 1);
  // After the step of distance d each element combines its run's last 2d elements.
  for (int64_t d = 1; d < n; d *= 2) {
    Expr here = SliceOf(key, {d}, {n}), there = SliceOf(key, {0}, {n - d});
    Expr combined = ApplyScalarBody(*i->attrs().to_apply, {SliceOf(sum, {0}, {n - d}), SliceOf(sum, {d}, {n})})[0];
    Expr tail = SelectExpr(here == there, combined, SliceOf(sum, {d}, {n}));
    sum = ConcatOf({SliceOf(sum, {0}, {d}), tail}, 0);
  }
  // Only the last of each run is written; the others aim outside.
  Expr last = n == 1 ? Expr(BroadcastTo(c->AddConstant(Literal::Int(PrimitiveType::Pred, 1)), {1}))
                     : ConcatOf({CompareExpr(Direction::NE, SliceOf(key, {0}, {n - 1}), SliceOf(key, {1}, {n})),
                                 BroadcastTo(c->AddConstant(Literal::Int(PrimitiveType::Pred, 1)), {1})},
                                0);
  // Skipped elements need indices of their own, since these are promised to be unique.
  Expr skipped = IotaOf(c, PrimitiveType::S64, {n}, 0) + static_cast<double>(extent);
  Expr inside = last & (key < static_cast<double>(extent));
  Expr index = ReshapeTo(SelectExpr(inside, key, skipped), {n, 1});
  Instruction* scatter = c->AddClone(i, i->shape(), {i->operand(0), index.get(), sum.get()});
  scatter->mutable_attrs().unique_indices = true;
  scatter->mutable_attrs().index_vector_dim = 1;
  return scatter;
}

}  // namespace

absl::StatusOr<bool> ScatterDeterminismExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        return i->Is(Opcode::Scatter) && !i->attrs().unique_indices.value_or(false) && OrderMatters(i) &&
               IsScalarBody(*i->attrs().to_apply) && i->operands().back()->shape().ElementCount() > 1;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return Simple(i) ? Sorted(i) : ScatterAsLoop(i); });
}

}  // namespace kiln
