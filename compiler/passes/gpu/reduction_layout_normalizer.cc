// Reductions see their operand in the order of memory; results keep the layout they had.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/gpu/bitcasts.h"

namespace kiln {

absl::StatusOr<bool> ReductionLayoutNormalizer(Module& m, PassContext& ctx) {
  const auto wanted = [](const Instruction* i) {
    if (!i->Is(Opcode::Reduce) || i->operand(0)->shape().HasDynamic()) return false;
    const Layout layout = i->operand(0)->shape().LayoutOrDefault();
    for (int64_t k = 1; k < i->operand_count() / 2; ++k)  // all arrays must lie alike
      if (i->operand(k)->shape().LayoutOrDefault().minor_to_major != layout.minor_to_major) return false;
    return !i->operand(0)->shape().HasDefaultLayout();
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const Shape& in = i->operand(0)->shape();
    const Ints& reduced = *i->attrs().dimensions;
    const Layout layout = in.LayoutOrDefault();
    const Ints order(layout.minor_to_major.rbegin(), layout.minor_to_major.rend());  // old dimension at each new place
    const auto is_reduced = [&](int64_t d) { return std::find(reduced.begin(), reduced.end(), d) != reduced.end(); };
    Ints dims, extents, kept_old, kept_new;  // kept dimensions, old numbers, in old and in new order
    for (size_t k = 0; k < order.size(); ++k) {
      extents.push_back(in.dim(order[k]));
      if (is_reduced(order[k]))
        dims.push_back(static_cast<int64_t>(k));
      else
        kept_new.push_back(order[k]);
    }
    for (int64_t d = 0; d < in.rank(); ++d)
      if (!is_reduced(d)) kept_old.push_back(d);
    std::vector<Instruction*> operands;
    for (int64_t k = 0; k < i->operand_count() / 2; ++k)
      operands.push_back(BitcastTo(i->operand(k), LaidOut(i->operand(k)->shape().type(), extents)));
    std::vector<Shape> results;
    for (const Shape& s : ResultShapes(i)) {
      Shape r = s;
      for (size_t k = 0; k < kept_new.size(); ++k) r.mutable_dims()[k] = in.dim(kept_new[k]);
      Layout l;
      for (int64_t old_place : s.LayoutOrDefault().minor_to_major) {
        const int64_t d = kept_old[static_cast<size_t>(old_place)];
        l.minor_to_major.push_back(std::find(kept_new.begin(), kept_new.end(), d) - kept_new.begin());
      }
      r.set_layout(l);
      results.push_back(r);
    }
    return ResultsLike(i, ReduceLike(i, operands, dims, results));
  });
}

}  // namespace kiln
