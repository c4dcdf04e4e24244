// Batch dimensions of a product that are neighbours on both sides become one.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> DotDimensionMerger(Module& m, PassContext& ctx) {
  const auto wanted = [](const Instruction* i) {
    if (!i->Is(Opcode::Dot) || i->attrs().sparsity || i->shape().HasDynamic()) return false;
    const Ints l = i->attrs().lhs_batch_dims.value_or(Ints()), r = i->attrs().rhs_batch_dims.value_or(Ints());
    for (size_t k = 1; k < l.size(); ++k)
      if (l[k] != l[0] + static_cast<int64_t>(k) || r[k] != r[0] + static_cast<int64_t>(k)) return false;
    return l.size() > 1;
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const auto batch = static_cast<int64_t>(i->attrs().lhs_batch_dims->size());
    // Without the batch dimensions but the first.
    const auto merged = [&](const Shape& s, int64_t first) {
      Ints dims;
      for (int64_t d = 0; d < s.rank(); ++d) {
        if (d > first && d < first + batch)
          dims.back() *= s.dim(d);
        else
          dims.push_back(s.dim(d));
      }
      return dims;
    };
    const auto moved = [&](const Ints& dims, int64_t first) {
      Ints out;
      for (int64_t d : dims) out.push_back(d > first ? d - batch + 1 : d);
      return out;
    };
    const int64_t l = i->attrs().lhs_batch_dims->front(), r = i->attrs().rhs_batch_dims->front();
    const auto flat = [&](int64_t k, int64_t first) {
      return ReshapeTo(i->operand(k), merged(i->operand(k)->shape(), first)).get();
    };
    Instruction* dot =
        i->parent()->AddClone(i, Shape::Array(i->shape().type(), merged(i->shape(), 0)), {flat(0, l), flat(1, r)});
    dot->mutable_attrs().lhs_batch_dims = Ints{l};
    dot->mutable_attrs().rhs_batch_dims = Ints{r};
    dot->mutable_attrs().lhs_contracting_dims = moved(i->attrs().lhs_contracting_dims.value_or(Ints()), l);
    dot->mutable_attrs().rhs_contracting_dims = moved(i->attrs().rhs_contracting_dims.value_or(Ints()), r);
    return ReshapeTo(dot, i->shape().dims()).get();
  });
}

}  // namespace kiln
