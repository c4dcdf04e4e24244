// Sorting a permutation with its places gives the inverse permutation, which a scatter writes at once.
//
// The keys must be known to be a permutation: the places that another sort carried along.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool Ascending(const Computation* less) {
  const Instruction* r = less->root();
  return r->Is(Opcode::Compare) && *r->attrs().direction == Direction::LT && r->operand(0) == less->parameter(0) &&
         r->operand(1) == less->parameter(1);
}

// Whether `i` counts along `dim`, from 0.
bool Places(const Instruction* i, int64_t dim) {
  return i->Is(Opcode::Iota) && i->attrs().iota_dimension.value_or(0) == dim;
}

int64_t SortedDim(const Instruction* sort) {
  const std::optional<Ints>& dims = sort->attrs().dimensions;
  return dims && !dims->empty() ? (*dims)[0] : 0;
}

// Whether every line of `i` along `dim` is a permutation: the places that another sort carried along.
bool Permutation(const Instruction* i, int64_t dim) {
  if (!i->Is(Opcode::GetTupleElement) || !i->operand(0)->Is(Opcode::Sort)) return false;
  const Instruction* sort = i->operand(0);
  return SortedDim(sort) == dim && Places(sort->operand(*i->attrs().tuple_index), dim);
}

bool IsWanted(const Instruction* i) {
  if (!i->Is(Opcode::Sort) || i->operand_count() != 2 || i->shape().HasDynamic()) return false;
  const int64_t dim = SortedDim(i);
  return Permutation(i->operand(0), dim) && IsIntegral(i->operand(0)->shape().type()) && Places(i->operand(1), dim) &&
         Ascending(*i->attrs().to_apply);
}

// For each key the place of its result: the key itself along `dim`, its own place along the others.
Expr Targets(Expr keys, int64_t dim) {
  // Wide enough for the places of every dimension.
  const PrimitiveType t = BitWidth(keys.type()) > 32 ? PrimitiveType::S64 : PrimitiveType::S32;
  const Shape& s = keys.shape();
  Ints one = s.dims();
  one.push_back(1);
  std::vector<Expr> parts;
  for (int64_t d = 0; d < s.rank(); ++d)
    parts.push_back(ReshapeTo(d == dim ? ConvertTo(t, keys) : IotaOf(keys.computation(), t, s.dims(), d), one));
  return ConcatOf(parts, s.rank());
}

absl::StatusOr<Instruction*> Expand(Instruction* i) {
  Computation* c = i->parent();
  Module* m = c->module();
  const Shape keys = i->operand(0)->shape(), places = i->operand(1)->shape();
  const PrimitiveType t = places.type();
  Expr zeros = BroadcastTo(c->AddConstant(Literal::Of(t, 0)), places.dims());
  const Expr targets = Targets(i->operand(0), SortedDim(i));
  Instruction* scatter =
      c->Add(Opcode::Scatter, Shape::Array(t, places.dims()), {zeros.get(), targets.get(), i->operand(1)});
  Ints all;
  for (int64_t d = 0; d < places.rank(); ++d) all.push_back(d);
  Attributes& a = scatter->mutable_attrs();
  a.update_window_dims = Ints();
  a.inserted_window_dims = a.scatter_dims_to_operand_dims = all;
  a.index_vector_dim = places.rank();
  a.unique_indices = true;
  Computation* second = m->AddComputation("second");
  second->AddParameter(0, Shape::Scalar(t), "old");
  second->set_root(second->AddParameter(1, Shape::Scalar(t), "new"));
  a.to_apply = second;
  return TupleOf({IotaOf(c, keys.type(), keys.dims(), SortedDim(i)), scatter});
}

}  // namespace

absl::StatusOr<bool> PermutationSortExpander(Module& m, PassContext& ctx) {
  ASSIGN_OR_RETURN(const bool changed, ExpandEach(m, ctx, IsWanted, Expand));
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
