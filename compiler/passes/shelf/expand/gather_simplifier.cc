// Gathers in one form: a matrix of index vectors, windows of the operand's full rank behind one batch dimension. Those
// of nothing are empty, and need no gather.
#include <algorithm>
#include <numeric>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/expand/indexed_form.h"

namespace kiln {
namespace {

bool Simple(const Instruction* i) {
  Ints offset(static_cast<size_t>(i->operand(0)->shape().rank()));
  std::iota(offset.begin(), offset.end(), 1);
  return i->operand(1)->shape().rank() == 2 && *i->attrs().index_vector_dim == 1 &&
         i->attrs().collapsed_slice_dims.value_or(Ints()).empty() &&
         i->attrs().operand_batching_dims.value_or(Ints()).empty() && i->attrs().offset_dims.value_or(Ints()) == offset;
}

bool TakesNothing(const Instruction* i) {
  const Ints& sizes = *i->attrs().slice_sizes;
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

}  // namespace

absl::StatusOr<bool> GatherSimplifier(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        const Shape& x = i->operand_count() ? i->operand(0)->shape() : i->shape();
        return i->Is(Opcode::Gather) && (!Simple(i) || x.rank() == 0 || TakesNothing(i)) && x.ElementCount() > 0;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        if (TakesNothing(i)) return Expr(i).Like(0).get();
        if (i->operand(0)->shape().rank() == 0) return BroadcastTo(i->operand(0), i->shape().dims()).get();
        Instruction* plain = WithoutBatching(i);
        Expr rows = IndexRows(plain->operand(1), *plain->attrs().index_vector_dim);
        Ints dims = *plain->attrs().slice_sizes, offset(dims.size());
        std::iota(offset.begin(), offset.end(), 1);
        dims.insert(dims.begin(), rows.shape().dim(0));
        Instruction* n =
            i->parent()->AddClone(plain, Shape::Array(i->shape().type(), dims), {plain->operand(0), rows.get()});
        n->mutable_attrs().index_vector_dim = 1;
        n->mutable_attrs().collapsed_slice_dims = Ints();
        n->mutable_attrs().offset_dims = offset;
        Expr out = FromRows(plain, n);
        if (plain != i) i->parent()->Remove(plain);
        return out.get();
      });
}

}  // namespace kiln
