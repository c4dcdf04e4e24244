// A gathered array of which each device takes the shard of one other device, no two the same, is a permutation.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/device_values.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// For each device whose shard is taken, the device that takes it; empty where the slice takes anything else.
Groups Permutation(const Module& m, const Instruction* slice) {
  if (!slice->Is(Opcode::DynamicSlice) || slice->operand_count() != 1 + slice->shape().rank()) return {};
  const Instruction* all = slice->operand(0);
  if (!all->Is(Opcode::AllGather) || all->operand_count() != 1 || all->users().size() != 1 || m.replica_count != 1 ||
      GroupModeOf(*all) != GroupMode::kDevices || all->operand(0)->shape() != slice->shape())
    return {};
  const int64_t d = (*all->attrs().dimensions)[0], shard = slice->shape().dim(d);
  const auto groups = DeviceGroups(*all, m.replica_count, m.partition_count);
  const std::optional<Ints> starts = SliceStarts(slice, d);
  if (!groups.ok() || !starts || shard == 0) return {};
  Groups pairs;
  std::set<int64_t> sources;
  bool moves = false;
  for (const Ints& g : *groups)
    for (int64_t device : g) {
      const int64_t start = (*starts)[static_cast<size_t>(device)];
      if (start % shard != 0) return {};
      const int64_t source = g[static_cast<size_t>(start / shard)];
      if (!sources.insert(source).second) return {};
      moves = moves || source != device;
      pairs.push_back({source, device});
    }
  if (!moves || pairs.size() != starts->size()) return {};
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace

absl::StatusOr<bool> AllGatherToCollectivePermuteSimplifier(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [&](const Instruction* i) { return !Permutation(m, i).empty(); },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Instruction* all = i->operand(0);
        Instruction* permute = i->parent()->Add(Opcode::CollectivePermute, i->shape(), {all->operand(0)});
        permute->mutable_attrs().channel_id = all->attrs().channel_id;
        permute->mutable_attrs().source_target_pairs = GroupsText(Permutation(m, i));
        return permute;
      });
}

}  // namespace kiln
