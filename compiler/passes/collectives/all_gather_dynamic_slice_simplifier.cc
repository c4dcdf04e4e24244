// What each device takes of a gathered array, if it is its own shard again, is the shard: nobody waits for the others.
// A reshape may stand between.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/device_values.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

const Instruction* GatherBehind(const Instruction* slice) {
  const Instruction* all = slice->operand(0);
  if (all->Is(Opcode::Reshape)) all = all->operand(0);
  const bool plain = all->Is(Opcode::AllGather) && all->operand_count() == 1 && all->shape().IsArray();
  return plain && !all->shape().HasDynamic() ? all : nullptr;
}

// The only dimension that the slice does not take whole, or -1.
int64_t SlicedDimension(const Instruction* slice) {
  int64_t found = -1;
  for (int64_t d = 0; d < slice->shape().rank(); ++d) {
    if (slice->shape().dim(d) == slice->operand(0)->shape().dim(d)) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found;
}

int64_t ElementsBefore(const Shape& s, int64_t d) { return Product(Ints(s.dims().begin(), s.dims().begin() + d)); }

bool TakesOwnShard(const Module& m, const Instruction* slice) {
  if (!slice->Is(Opcode::DynamicSlice) || slice->operand_count() != 1 + slice->shape().rank()) return false;
  const Instruction* all = GatherBehind(slice);
  const int64_t d = all ? SlicedDimension(slice) : -1;
  if (d < 0 || ElementsBefore(slice->shape(), d) != ElementsBefore(all->shape(), (*all->attrs().dimensions)[0]))
    return false;
  const auto groups = DeviceGroups(*all, m.replica_count, m.partition_count);
  const std::optional<Ints> starts = SliceStarts(slice, d);
  if (!groups.ok() || !starts) return false;
  const int64_t part = slice->shape().dim(d), whole = slice->operand(0)->shape().dim(d);
  size_t devices = 0;
  for (const Ints& g : *groups) {
    if (part * static_cast<int64_t>(g.size()) != whole) return false;
    for (size_t k = 0; k < g.size(); ++k)
      if ((*starts)[static_cast<size_t>(g[k])] != static_cast<int64_t>(k) * part) return false;
    devices += g.size();
  }
  return devices == starts->size();
}

}  // namespace

absl::StatusOr<bool> AllGatherDynamicSliceSimplifier(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [&](const Instruction* i) { return TakesOwnShard(m, i); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        return ReshapeTo(GatherBehind(i)->operand(0), i->shape().dims()).get();
      });
}

}  // namespace kiln
