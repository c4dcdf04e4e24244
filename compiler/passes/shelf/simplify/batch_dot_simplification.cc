// Batch dimensions of extent 1 are taken out of a dot and put back by a reshape.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool OneWide(const Instruction* dot, size_t batch) {
  return dot->operand(0)->shape().dim((*dot->attrs().lhs_batch_dims)[batch]) == 1;
}

// `x` without `gone`, and `dims` renumbered.
Expr Without(Expr x, const Ints& gone) {
  Ints kept;
  for (int64_t d = 0; d < x.shape().rank(); ++d)
    if (std::find(gone.begin(), gone.end(), d) == gone.end()) kept.push_back(x.shape().dim(d));
  return ReshapeTo(x, kept);
}
Ints Renumbered(const Ints& dims, const Ints& gone) {
  Ints out;
  for (int64_t d : dims) {
    if (std::find(gone.begin(), gone.end(), d) != gone.end()) continue;
    out.push_back(d - std::count_if(gone.begin(), gone.end(), [&](int64_t g) { return g < d; }));
  }
  return out;
}

}  // namespace

absl::StatusOr<bool> BatchDotSimplification(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        if (!i->Is(Opcode::Dot) || !i->attrs().lhs_batch_dims || i->attrs().sparsity) return false;
        for (size_t k = 0; k < i->attrs().lhs_batch_dims->size(); ++k)
          if (OneWide(i, k)) return true;
        return false;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Ints lhs, rhs;
        for (size_t k = 0; k < i->attrs().lhs_batch_dims->size(); ++k)
          if (OneWide(i, k)) {
            lhs.push_back((*i->attrs().lhs_batch_dims)[k]);
            rhs.push_back((*i->attrs().rhs_batch_dims)[k]);
          }
        Attributes a = i->attrs();
        a.sharding = std::nullopt;  // the reshape has it; the dot has other dimensions
        a.lhs_batch_dims = Renumbered(*a.lhs_batch_dims, lhs);
        a.rhs_batch_dims = Renumbered(*a.rhs_batch_dims, rhs);
        if (a.lhs_contracting_dims) a.lhs_contracting_dims = Renumbered(*a.lhs_contracting_dims, lhs);
        if (a.rhs_contracting_dims) a.rhs_contracting_dims = Renumbered(*a.rhs_contracting_dims, rhs);
        Ints kept;
        for (int64_t d = 0; d < i->shape().rank(); ++d)
          if (d >= static_cast<int64_t>(i->attrs().lhs_batch_dims->size()) || !OneWide(i, static_cast<size_t>(d)))
            kept.push_back(i->shape().dim(d));
        Instruction* dot = i->parent()->Add(Opcode::Dot, Shape::Array(i->shape().type(), kept),
                                            {Without(i->operand(0), lhs).get(), Without(i->operand(1), rhs).get()});
        dot->mutable_attrs() = std::move(a);
        return ReshapeTo(dot, i->shape().dims()).get();
      });
}

}  // namespace kiln
