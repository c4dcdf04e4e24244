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

int64_t ElementsBefore(const Shape& s, int64_t d) { return Product(Ints(s.dims().begin(), s.dims().begin() + d)); }

bool TakesOwnShard(const Module& m, const Instruction* slice) {
  if (!slice->Is(Opcode::DynamicSlice) || slice->operand_count() != 1 + slice->shape().rank()) return false;
  const Instruction* all = GatherBehind(slice);
  const int64_t d = all ? SlicedDimension(slice) : -1;
  if (d < 0 || ElementsBefore(slice->shape(), d) != ElementsBefore(all->shape(), (*all->attrs().dimensions)[0]))
    return false;
  const auto groups = DeviceGroups(*all, m.replica_count, m.partition_count);
  return groups.ok() && TakesPartsInOrder(slice, d, *groups);
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
