// all-gather as an all-reduce: each device writes its shard at its own place of an array of zeros, and the arrays are
// added. For transports that only reduce.
#include "compiler/hlo/replica_groups.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// A device's place in its group, by its number.
absl::StatusOr<Instruction*> PlaceInGroup(const Module& m, Instruction* i) {
  auto groups = DeviceGroups(*i, m.replica_count, m.partition_count);
  if (!groups.ok()) return ErrorAt(i, groups.status().message());
  const int64_t devices = m.replica_count * m.partition_count;
  Literal table(Shape::Array(PrimitiveType::S32, {devices}));
  for (const Ints& g : *groups)
    for (size_t k = 0; k < g.size(); ++k)
      table.Set(g[k], Literal::Int(PrimitiveType::S32, static_cast<int64_t>(k)).Get(0));
  Computation* c = i->parent();
  const Shape id = Shape::Scalar(PrimitiveType::U32);
  Expr replica = ConvertTo(PrimitiveType::S32, c->Add(Opcode::ReplicaId, id, {}));
  Expr partition = ConvertTo(PrimitiveType::S32, c->Add(Opcode::PartitionId, id, {}));
  Expr device = replica * static_cast<double>(m.partition_count) + partition;
  return ReshapeTo(DynamicSliceOf(c->AddConstant(table), {device}, {1}), {}).get();
}

const Shape& ResultOf(const Instruction* i, int64_t k) {
  return i->shape().IsTuple() ? i->shape().tuple()[k] : i->shape();
}

bool Addable(const Instruction* i) {
  for (int64_t k = 0; k < i->operand_count(); ++k)
    if (!IsFloat(ResultOf(i, k).type()) && !IsIntegral(ResultOf(i, k).type())) return false;
  return true;
}

// Operand `k`, gathered.
Instruction* Sum(Instruction* i, int64_t k, Expr place) {
  Computation* c = i->parent();
  const Shape& shape = ResultOf(i, k);
  const int64_t dim = (*i->attrs().dimensions)[0];
  std::vector<Expr> starts(static_cast<size_t>(shape.rank()), IntegerIn(c, PrimitiveType::S32, 0));
  starts[static_cast<size_t>(dim)] = place * static_cast<double>(i->operand(k)->shape().dim(dim));
  Expr empty = BroadcastTo(c->AddConstant(Literal::Of(shape.type(), 0)), shape.dims());
  Instruction* all = c->Add(Opcode::AllReduce, shape, {UpdateOf(empty, i->operand(k), starts).get()});
  all->mutable_attrs() = i->attrs();
  all->mutable_attrs().dimensions.reset();
  all->mutable_attrs().to_apply = ScalarFunction(c->module(), Opcode::Add, shape.type());
  return all;
}

}  // namespace

absl::StatusOr<bool> AllGatherDecomposer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::AllGather) && Addable(i); },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        ASSIGN_OR_RETURN(Expr place, PlaceInGroup(m, i));
        std::vector<Instruction*> sums;
        for (int64_t k = 0; k < i->operand_count(); ++k) sums.push_back(Sum(i, k, place));
        return i->shape().IsTuple() ? i->parent()->Add(Opcode::Tuple, i->shape(), sums) : sums[0];
      });
}

}  // namespace kiln
