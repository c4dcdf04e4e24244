// Outputs take the storage of donated inputs: the first donor of the same shape that is still free.
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> OptimizeInputOutputBufferAlias(Module& m, PassContext& ctx) {
  bool changed = false;
  const auto leaf = [](const Shape& s, const ShapeIndex& index) {
    const Shape* at = &s;
    for (int64_t k : index) at = &at->tuple()[static_cast<size_t>(k)];
    return *at;
  };
  std::vector<std::pair<int64_t, ShapeIndex>> free = m.buffer_donors;
  std::vector<std::pair<ShapeIndex, Shape>> outputs;
  ForEachLeaf(m.entry()->root()->shape(), [&](const ShapeIndex& index, const Shape& s) {
    for (const AliasEntry& a : m.aliases)
      if (a.output == index) return;
    if (s.IsArray()) outputs.push_back({index, s});
  });
  for (const auto& [index, shape] : outputs) {
    for (size_t k = 0; k < free.size(); ++k) {
      if (leaf(m.entry()->parameter(free[k].first)->shape(), free[k].second) != shape || !ctx.Take()) continue;
      m.aliases.push_back({index, free[k].first, free[k].second, false});
      const auto donor = std::find(m.buffer_donors.begin(), m.buffer_donors.end(), free[k]);
      m.buffer_donors.erase(donor);
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(k));
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace kiln
