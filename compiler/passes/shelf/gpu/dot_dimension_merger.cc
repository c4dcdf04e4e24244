// Several leading batch dimensions of a product become one.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> DotDimensionMerger(Module& m, PassContext& ctx) {
  const auto wanted = [](const Instruction* i) {
    if (!i->Is(Opcode::Dot) || i->attrs().sparsity || i->shape().HasDynamic()) return false;
    const Ints l = i->attrs().lhs_batch_dims.value_or(Ints()), r = i->attrs().rhs_batch_dims.value_or(Ints());
    for (size_t k = 0; k < l.size(); ++k)
      if (l[k] != static_cast<int64_t>(k) || r[k] != l[k]) return false;
    return l.size() > 1;
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const auto batch = static_cast<int64_t>(i->attrs().lhs_batch_dims->size());
    const auto merged = [&](const Shape& s) {
      Ints dims = {1};
      for (int64_t d = 0; d < s.rank(); ++d) {
        if (d < batch)
          dims[0] *= s.dim(d);
        else
          dims.push_back(s.dim(d));
      }
      return dims;
    };
    const auto moved = [&](const Ints& dims) {
      Ints out;
      for (int64_t d : dims) out.push_back(d - batch + 1);
      return out;
    };
    const auto flat = [&](int64_t k) { return ReshapeTo(i->operand(k), merged(i->operand(k)->shape())).get(); };
    Instruction* dot =
        i->parent()->AddClone(i, Shape::Array(i->shape().type(), merged(i->shape())), {flat(0), flat(1)});
    dot->mutable_attrs().lhs_batch_dims = dot->mutable_attrs().rhs_batch_dims = Ints{0};
    dot->mutable_attrs().lhs_contracting_dims = moved(*i->attrs().lhs_contracting_dims);
    dot->mutable_attrs().rhs_contracting_dims = moved(*i->attrs().rhs_contracting_dims);
    return ReshapeTo(dot, i->shape().dims()).get();
  });
}

}  // namespace kiln
