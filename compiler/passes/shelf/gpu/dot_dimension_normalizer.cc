// Products contract one dimension: several become one, in the order in which the left operand has them. Operands whose
// contracted dimensions do not lie together in that order are transposed first.
#include <algorithm>
#include <numeric>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

// Pairs of contracted dimensions, ordered by the left one.
void SortPairs(DotSide* l, DotSide* r) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t k = 0; k < l->contracting.size(); ++k) pairs.emplace_back(l->contracting[k], r->contracting[k]);
  std::sort(pairs.begin(), pairs.end());
  for (size_t k = 0; k < pairs.size(); ++k) {
    l->contracting[k] = pairs[k].first;
    r->contracting[k] = pairs[k].second;
  }
}

bool LieTogether(const Ints& dims) {
  for (size_t k = 1; k < dims.size(); ++k)
    if (dims[k] != dims[0] + static_cast<int64_t>(k)) return false;
  return true;
}

// `x` with its contracted dimensions as one, and `side` for it.
Expr Merged(Expr x, DotSide* side) {
  if (!LieTogether(side->contracting)) {
    // Batch and free dimensions keep their order, and come first.
    Ints order;
    for (int64_t d = 0; d < x.shape().rank(); ++d)
      if (!Holds(side->contracting, d)) order.push_back(d);
    order.insert(order.end(), side->contracting.begin(), side->contracting.end());
    const auto moved = [&](Ints* dims) {
      for (int64_t& d : *dims) d = std::find(order.begin(), order.end(), d) - order.begin();
    };
    x = TransposeBy(x, order);
    for (Ints* dims : {&side->batch, &side->free, &side->contracting}) moved(dims);
  }
  const int64_t first = side->contracting[0], count = static_cast<int64_t>(side->contracting.size());
  Ints dims = x.shape().dims();
  for (int64_t k = 1; k < count; ++k) dims[static_cast<size_t>(first)] *= dims[static_cast<size_t>(first + k)];
  dims.erase(dims.begin() + first + 1, dims.begin() + first + count);
  for (Ints* role : {&side->batch, &side->free})
    for (int64_t& d : *role)
      if (d > first) d -= count - 1;
  side->contracting = {first};
  return ReshapeTo(x, dims);
}

}  // namespace

absl::StatusOr<bool> DotDimensionNormalizer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return IsPlainDot(i) && SideOf(i, 0).contracting.size() > 1; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        DotSide l = SideOf(i, 0), r = SideOf(i, 1);
        SortPairs(&l, &r);
        const Expr lhs = Merged(i->operand(0), &l), rhs = Merged(i->operand(1), &r);
        return DotLike(i, lhs, l, rhs, r).get();
      });
}

}  // namespace kiln
