#include "aot/tools/partitioned.h"

#include "compiler/pipeline/registry.h"

namespace kiln {

absl::Status PartitionProgram(Module* m) {
  if (m->partition_count < 2) return absl::OkStatus();
  PassContext ctx;
  for (const char* pass :
       {"defuser", "convert-async-collectives-to-sync", "call-inliner", "sharding-propagation", "spmd-partitioner"})
    RETURN_IF_ERROR(FindPass(pass)->run(*m, ctx).status());
  return absl::OkStatus();
}

std::vector<Literal> PartsOfArguments(const PartitionedEntry& entry, const Module& module,
                                      const std::vector<Literal>& whole, int64_t partition) {
  std::vector<Shape> tiles;
  for (const Instruction* p : module.entry()->parameters())
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) { tiles.push_back(s); });
  std::vector<Literal> out;
  for (size_t k = 0; k < entry.arguments.size() && out.size() < whole.size(); ++k) {
    if (!entry.arguments[k].whole.IsArray()) continue;
    const Literal& all = whole[out.size()];
    out.push_back(entry.arguments[k].sharding.kind == Sharding::kTiled
                      ? TileOfLiteral(all, entry.arguments[k].sharding, tiles[k], partition)
                      : all);
  }
  return out;
}

void JoinResults(const PartitionedEntry& entry, std::vector<std::vector<Literal>>* parts) {
  size_t at = 0;
  for (const PartitionedLeaf& leaf : entry.results) {
    if (!leaf.whole.IsArray()) continue;
    if (leaf.sharding.kind == Sharding::kTiled) {
      std::vector<Literal> tiles;
      for (const auto& p : *parts) tiles.push_back(p[at]);
      const Literal whole = JoinTiles(tiles, leaf);
      for (auto& p : *parts) p[at] = whole;
    }
    ++at;
  }
}

}  // namespace kiln
