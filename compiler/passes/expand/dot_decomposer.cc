// Dots as [batch, m, k] x [batch, k, n] -> [batch, m, n], m/k and k/n in either order, each class one dimension.
//
// The kernel takes any strides, so a transposed operand stays as it is; a transpose is added only where the dimensions
// of a class are not adjacent or batch dimensions do not lead. A batch of vectors is left to dot-normalizer.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

struct Side {
  Expr x;
  bool contracting_first;  // [batch, k, free] instead of [batch, free, k]
};

Side Canonical(Instruction* x, const Ints& batch, const Ints& contracting, int64_t b, int64_t k) {
  Ints free;
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contracting.begin(), contracting.end(), d) == contracting.end())
      free.push_back(d);
  int64_t f = 1;
  for (int64_t d : free) f *= x->shape().dim(d);
  auto order = [&](const Ints& u, const Ints& v) {
    Ints p = batch;
    p.insert(p.end(), u.begin(), u.end());
    p.insert(p.end(), v.begin(), v.end());
    return p;
  };
  if (Ascend(x->shape(), {batch, free, contracting})) return {ReshapeTo(x, {b, f, k}), false};
  if (Ascend(x->shape(), {batch, contracting, free})) return {ReshapeTo(x, {b, k, f}), true};
  // What follows one another stays so: rows are moved, not elements.
  int64_t minor = x->shape().rank() - 1;
  while (minor > 0 && x->shape().dim(minor) == 1) --minor;
  if (std::find(free.begin(), free.end(), minor) != free.end())
    return {ReshapeTo(TransposeBy(x, order(contracting, free)), {b, k, f}), true};
  return {ReshapeTo(TransposeBy(x, order(free, contracting)), {b, f, k}), false};
}

}  // namespace

absl::StatusOr<bool> DotDecomposer(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Dot) || i->attrs().sparsity) continue;
      Attributes& a = i->mutable_attrs();
      const Ints lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
      const Ints lc = a.lhs_contracting_dims.value_or(Ints()), rc = a.rhs_contracting_dims.value_or(Ints());
      const int64_t rank = i->operand(0)->shape().rank();
      const bool alike = (rank == 2 || rank == 3) && i->operand(1)->shape().rank() == rank;
      if (alike && lb == Ints{0} && rb == Ints{0} && lc.size() == 1) continue;
      if (!ctx.Take()) continue;
      int64_t b = 1, k = 1;
      for (int64_t d : lb) b *= i->operand(0)->shape().dim(d);
      for (int64_t d : lc) k *= i->operand(0)->shape().dim(d);
      const Side l = Canonical(i->operand(0), lb, lc, b, k), r = Canonical(i->operand(1), rb, rc, b, k);
      const int64_t mm = l.x.shape().dim(l.contracting_first ? 2 : 1),
                    nn = r.x.shape().dim(r.contracting_first ? 2 : 1);
      // Narrow floats accumulate in a tile that holds whole rows; rows too wide for one are kept in f32 at first.
      constexpr int64_t kWidestNarrowRow = 32768;
      PrimitiveType type = i->shape().type();
      if (IsFloat(type) && InfoOf(type).bits < 32 && nn > kWidestNarrowRow) type = PrimitiveType::F32;
      Instruction* dot = c->AddClone(i, Shape::Array(type, {b, mm, nn}), {l.x.get(), r.x.get()});
      dot->mutable_attrs().lhs_batch_dims = dot->mutable_attrs().rhs_batch_dims = Ints{0};
      dot->mutable_attrs().lhs_contracting_dims = Ints{l.contracting_first ? 1 : 2};
      dot->mutable_attrs().rhs_contracting_dims = Ints{r.contracting_first ? 1 : 2};
      i->ReplaceAllUsesWith(ReshapeTo(ConvertTo(i->shape().type(), dot), i->shape().dims()).get());
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
