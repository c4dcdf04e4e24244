// A reduction of which each device takes its own slice scatters the reduction instead.
//
// The slice must begin at the device's number times its extent, the number being replica-id or partition-id as the
// groups count, and there must be one group of all in order.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/collectives/groups.h"

namespace kiln {
namespace {

const Instruction* Through(const Instruction* i) {
  while (i->Is(Opcode::Convert) || i->Is(Opcode::Reshape) || i->Is(Opcode::Bitcast)) i = i->operand(0);
  return i;
}

// Whether `offset` is (own number) * `extent`.
bool OwnPlace(const Instruction* offset, int64_t extent, Opcode number) {
  offset = Through(offset);
  if (extent == 1 && offset->Is(number)) return true;
  if (!offset->Is(Opcode::Multiply)) return false;
  for (int64_t k = 0; k < 2; ++k) {
    const Instruction *factor = Through(offset->operand(k)), *id = Through(offset->operand(1 - k));
    if (factor->Is(Opcode::Constant) && factor->shape().ElementCount() == 1 && factor->literal().Get(0).i == extent &&
        id->Is(number))
      return true;
  }
  return false;
}

// The dimension that is scattered, or -1.
int64_t ScatteredDimension(const Module& m, const Instruction* slice) {
  if (!slice->Is(Opcode::DynamicSlice)) return -1;
  const Instruction* all = slice->operand(0);
  if (!PlainAllReduce(all) || all->users().size() != 1) return -1;
  const bool partitions = all->attrs().channel_id.has_value();
  const int64_t devices = partitions ? m.partition_count : m.replica_count;
  if (devices < 2 || (partitions ? m.replica_count : m.partition_count) != 1) return -1;
  const Groups groups = WrittenGroups(all);
  if (groups.size() > 1) return -1;
  if (groups.size() == 1) {
    if (static_cast<int64_t>(groups[0].size()) != devices) return -1;
    for (size_t k = 0; k < groups[0].size(); ++k)
      if (groups[0][k] != static_cast<int64_t>(k)) return -1;
  }
  int64_t found = -1;
  for (int64_t d = 0; d < slice->shape().rank(); ++d) {
    const int64_t part = slice->shape().dim(d), whole = all->shape().dim(d);
    if (part == whole) continue;
    const Opcode number = partitions ? Opcode::PartitionId : Opcode::ReplicaId;
    if (found >= 0 || part * devices != whole || !OwnPlace(slice->operand(1 + d), part, number)) return -1;
    found = d;
  }
  return found;
}

}  // namespace

absl::StatusOr<bool> ReduceScatterCreator(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [&](const Instruction* i) { return ScatteredDimension(m, i) >= 0; },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        Instruction* all = i->operand(0);
        Instruction* scatter = i->parent()->Add(Opcode::ReduceScatter, i->shape(), {all->operand(0)});
        scatter->mutable_attrs() = all->attrs();
        scatter->mutable_attrs().dimensions = Ints{ScatteredDimension(m, i)};
        return scatter;
      });
}

}  // namespace kiln
