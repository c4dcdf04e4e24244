// Sorting a permutation with its places gives the inverse permutation, which a scatter writes at once.
//
// The keys must be known to be a permutation: the places that another sort carried along.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool Ascending(const Computation* less) {
  const Instruction* r = less->root();
  return r->Is(Opcode::Compare) && *r->attrs().direction == "LT" && r->operand(0) == less->parameter(0) &&
         r->operand(1) == less->parameter(1);
}

bool Places(const Instruction* i) { return i->Is(Opcode::Iota) && i->shape().rank() == 1; }

bool Permutation(const Instruction* i) {
  if (!i->Is(Opcode::GetTupleElement) || !i->operand(0)->Is(Opcode::Sort)) return false;
  return Places(i->operand(0)->operand(*i->attrs().tuple_index));
}

}  // namespace

absl::StatusOr<bool> PermutationSortExpander(Module& m, PassContext& ctx) {
  ASSIGN_OR_RETURN(const bool changed,
                   ExpandEach(
                       m, ctx,
                       [](Instruction* i) {
                         return i->Is(Opcode::Sort) && i->operand_count() == 2 && Permutation(i->operand(0)) &&
                                IsIntegral(i->operand(0)->shape().type()) && Places(i->operand(1)) &&
                                Ascending(*i->attrs().to_apply);
                       },
                       [&](Instruction* i) -> absl::StatusOr<Instruction*> {
                         Computation* c = i->parent();
                         const int64_t n = i->operand(0)->shape().dim(0);
                         const Shape keys = i->operand(0)->shape(), places = i->operand(1)->shape();
                         Expr zeros = BroadcastTo(c->AddConstant(Literal::Of(places.type(), 0)), {n});
                         Instruction* scatter =
                             c->Add(Opcode::Scatter, Shape::Array(places.type(), {n}),
                                    {zeros.get(), ReshapeTo(i->operand(0), {n, 1}).get(), i->operand(1)});
                         Attributes& a = scatter->mutable_attrs();
                         a.update_window_dims = Ints();
                         a.inserted_window_dims = Ints{0};
                         a.scatter_dims_to_operand_dims = Ints{0};
                         a.index_vector_dim = 1;
                         a.unique_indices = true;
                         Computation* second = m.AddComputation("second");
                         second->AddParameter(0, Shape::Scalar(places.type()), "old");
                         second->set_root(second->AddParameter(1, Shape::Scalar(places.type()), "new"));
                         a.to_apply = second;
                         return TupleOf({IotaOf(c, keys.type(), {n}, 0), scatter});
                       }));
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
