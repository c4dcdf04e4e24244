#include <algorithm>

#include "codegen/elemental/element.h"

namespace kiln {
namespace {

bool In(const Ints& v, int64_t d) { return std::find(v.begin(), v.end(), d) != v.end(); }

}  // namespace

ScatterPlan::ScatterPlan(const Instruction* s)
    : arrays(static_cast<size_t>(s->operand_count()) / 2),
      target(s->operand(0)->shape()),
      updates(s->operand(static_cast<int64_t>(arrays) + 1)->shape()),
      indices(s->operand(static_cast<int64_t>(arrays))),
      extent(target.rank(), 1),
      scatter_(s) {
  const Attributes& a = s->attrs();
  const Ints ib = a.input_batching_dims.value_or(Ints());
  for (int64_t d = 0; d < updates.rank(); ++d) (In(*a.update_window_dims, d) ? window_dims : batch_dims).push_back(d);
  size_t k = 0;
  for (int64_t d = 0; d < target.rank(); ++d) {
    if (In(*a.inserted_window_dims, d) || In(ib, d)) continue;
    to.push_back(d);
    extent[d] = updates.dim(window_dims[k++]);
  }
  for (int64_t d = 0; d < target.rank(); ++d) fits = fits && extent[d] <= target.dim(d);
}

absl::StatusOr<ScatterPlan::Start> ScatterPlan::StartOf(ElementEmitter& elements,
                                                        const std::vector<llvm::Value*>& batch) const {
  const Attributes& a = scatter_->attrs();
  const Ints ib = a.input_batching_dims.value_or(Ints()), sb = a.scatter_indices_batching_dims.value_or(Ints());
  Ir& ir = elements.ir();
  llvm::IRBuilder<>& b = ir.b;
  Start out{std::vector<llvm::Value*>(target.rank(), ir.I64(0)), b.getTrue()};
  for (size_t c = 0; c < a.scatter_dims_to_operand_dims->size(); ++c) {
    const int64_t d = (*a.scatter_dims_to_operand_dims)[c];
    Index x{batch};
    if (*a.index_vector_dim < indices->shape().rank())
      x.dims.insert(x.dims.begin() + *a.index_vector_dim, ir.I64(static_cast<int64_t>(c)));
    ASSIGN_OR_RETURN(Val v, elements.Emit(indices, x));
    out.dims[d] = b.CreateIntCast(v.re, b.getInt64Ty(), IsSigned(indices->shape().type()));
    out.inside = b.CreateAnd(out.inside, b.CreateICmpULE(out.dims[d], ir.I64(target.dim(d) - extent[d])));
  }
  for (size_t c = 0; c < ib.size(); ++c) out.dims[ib[c]] = batch[sb[c] - (sb[c] > *a.index_vector_dim ? 1 : 0)];
  return out;
}

}  // namespace kiln
