// Contracted dimensions that lie together in memory are named in their order, so that they can become one.
#include <algorithm>
#include <numeric>

#include "compiler/pass/pass.h"

namespace kiln {
namespace {

bool LieTogether(Ints dims) {
  std::sort(dims.begin(), dims.end());
  return std::adjacent_find(dims.begin(), dims.end(), [](int64_t a, int64_t b) { return b != a + 1; }) == dims.end();
}

bool InOrder(const Ints& dims) { return std::is_sorted(dims.begin(), dims.end()); }

Ints Permuted(const Ints& dims, const std::vector<size_t>& order) {
  Ints out;
  for (size_t k : order) out.push_back(dims[k]);
  return out;
}

// The side whose order decides; null: they stay as they are. Sorting one side must not disorder the other.
const Ints* Deciding(const Ints& lhs, const Ints& rhs) {
  const bool sort_left = LieTogether(lhs) && !InOrder(lhs), sort_right = LieTogether(rhs) && !InOrder(rhs);
  if (sort_left && (sort_right || !LieTogether(rhs))) return &lhs;
  return sort_right && !LieTogether(lhs) ? &rhs : nullptr;
}

}  // namespace

absl::StatusOr<bool> DotDimensionSorter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      if (!i->Is(Opcode::Dot) || !i->attrs().lhs_contracting_dims || i->attrs().sparsity) continue;
      const Ints lhs = *i->attrs().lhs_contracting_dims, rhs = *i->attrs().rhs_contracting_dims;
      const Ints* by = Deciding(lhs, rhs);
      if (!by || !ctx.Take()) continue;
      std::vector<size_t> order(lhs.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return (*by)[a] < (*by)[b]; });
      i->mutable_attrs().lhs_contracting_dims = Permuted(lhs, order);
      i->mutable_attrs().rhs_contracting_dims = Permuted(rhs, order);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
