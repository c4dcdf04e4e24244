#include "codegen/gpu/exchange_records.h"

#include <algorithm>

#include "compiler/hlo/replica_groups.h"
#include "runtime_min/gpu/nccl/exchange.h"
#include "runtime_min/gpu/nccl/nccl_abi.h"

namespace kiln::gpu {
namespace {

int64_t NcclType(PrimitiveType t) {
  switch (t) {
    case PrimitiveType::S8:
      return kNcclInt8;
    case PrimitiveType::S32:
      return kNcclInt32;
    case PrimitiveType::U32:
      return kNcclUint32;
    case PrimitiveType::S64:
      return kNcclInt64;
    case PrimitiveType::U64:
      return kNcclUint64;
    case PrimitiveType::F16:
      return kNcclFloat16;
    case PrimitiveType::BF16:
      return kNcclBfloat16;
    case PrimitiveType::F32:
      return kNcclFloat32;
    case PrimitiveType::F64:
      return kNcclFloat64;
    default:
      return kNcclUint8;
  }
}

int64_t NcclOp(NcclReduction::Op op) {
  switch (op) {
    case NcclReduction::Op::kSum:
      return kNcclSum;
    case NcclReduction::Op::kProduct:
      return kNcclProd;
    case NcclReduction::Op::kMinimum:
      return kNcclMin;
    case NcclReduction::Op::kMaximum:
      return kNcclMax;
  }
  return kNcclSum;
}

int64_t KindOf(NcclCall::Kind kind) {
  switch (kind) {
    case NcclCall::Kind::kAllReduce:
      return KILN_GPU_ALL_REDUCE;
    case NcclCall::Kind::kReduceScatter:
      return KILN_GPU_REDUCE_SCATTER;
    case NcclCall::Kind::kAllGather:
      return KILN_GPU_ALL_GATHER;
    case NcclCall::Kind::kAllToAll:
      return KILN_GPU_ALL_TO_ALL;
    case NcclCall::Kind::kPermute:
      return KILN_GPU_PERMUTE;
    case NcclCall::Kind::kBroadcast:
      return KILN_GPU_BROADCAST;
  }
  return KILN_GPU_BROADCAST;
}

}  // namespace

int64_t ExchangeRecords::GroupingOf(const std::vector<Ints>& groups) {
  const auto at = std::find(groupings_.begin(), groupings_.end(), groups);
  const int64_t place = at - groupings_.begin();
  if (at == groupings_.end()) groupings_.push_back(groups);
  return place;
}

// Rows, and one of the lists of numbers that say which.
absl::StatusOr<llvm::Constant*> ExchangeRecords::RaggedOf(const Thunk& t) {
  const Instruction* i = t.instruction;
  ASSIGN_OR_RETURN(const std::vector<Ints> groups, DeviceGroups(*i, replicas_, partitions_));
  for (int64_t k = 0; k < i->operand_count(); ++k)
    if (!i->operand(k)->shape().HasDefaultLayout() || !i->shape().HasDefaultLayout())
      return ErrorAt(i, "has not the form of calls of NCCL", absl::StatusCode::kInternal);
  const auto array = [&](const Slice& s, int64_t width, int64_t result) {
    return tables_.Struct(
        {tables_.Number(s.size / width), tables_.Number(kNcclUint8), tables_.Number(width), tables_.Number(result)});
  };
  const int64_t row = i->shape().ByteSize() / std::max<int64_t>(1, i->shape().dim(0));
  const std::vector<llvm::Constant*> arrays = {array(t.reads[0], std::max<int64_t>(1, row), t.writes[0].size),
                                               array(t.reads[2], ByteWidth(i->operand(2)->shape().type()), 0)};
  llvm::Constant* record = tables_.Global(
      tables_.Struct({tables_.Number(KILN_GPU_RAGGED), tables_.Number(0), tables_.Number(GroupingOf(groups)),
                      tables_.Number(static_cast<int64_t>(t.reads.size())), tables_.Array(arrays), tables_.Null(),
                      tables_.Text(i->name())}));
  known_[i] = record;
  return record;
}

absl::StatusOr<llvm::Constant*> ExchangeRecords::Of(const Thunk& t) {
  const Instruction* i = t.instruction;
  if (const auto it = known_.find(i); it != known_.end()) return it->second;
  if (i->Is(Opcode::RaggedAllToAll)) return RaggedOf(t);
  ASSIGN_OR_RETURN(const auto call, NcclCallOf(*i, replicas_, partitions_));
  if (!call || t.reads.size() != t.writes.size())
    return ErrorAt(i, "has not the form of a call of NCCL", absl::StatusCode::kInternal);
  std::vector<llvm::Constant*> arrays;
  for (size_t k = 0; k < t.reads.size(); ++k) {
    // Bytes, unless they are combined.
    int64_t width = 1, type = kNcclUint8;
    if (call->reduction) {
      width = ByteWidth(call->reduction->type);
      type = NcclType(call->reduction->type);
    }
    arrays.push_back(tables_.Struct({tables_.Number(t.reads[k].size / width), tables_.Number(type),
                                     tables_.Number(width), tables_.Number(t.writes[k].size)}));
  }
  const auto count = static_cast<int64_t>(arrays.size());
  llvm::Constant* record = tables_.Global(tables_.Struct(
      {tables_.Number(KindOf(call->kind)), tables_.Number(call->reduction ? NcclOp(call->reduction->op) : 0),
       tables_.Number(GroupingOf(call->groups)), tables_.Number(count), tables_.Array(arrays),
       tables_.Numbers(call->source), tables_.Text(i->name())}));
  known_[i] = record;
  return record;
}

llvm::Constant* ExchangeRecords::Groups() {
  if (groupings_.empty()) return tables_.Null();
  const int64_t devices = replicas_ * partitions_;
  std::vector<llvm::Constant*> list;
  for (const std::vector<Ints>& groups : groupings_) {
    Ints group(static_cast<size_t>(devices), -1), place(group.size(), 0), members(group.size(), 0);
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t k = 0; k < groups[g].size(); ++k) {
        const auto d = static_cast<size_t>(groups[g][k]);
        group[d] = static_cast<int64_t>(g);
        place[d] = static_cast<int64_t>(k);
        members[d] = static_cast<int64_t>(groups[g].size());
      }
    list.push_back(tables_.Struct({tables_.Numbers(group), tables_.Numbers(place), tables_.Numbers(members)}));
  }
  return tables_.Global(tables_.Struct(
      {tables_.Number(devices), tables_.Number(static_cast<int64_t>(list.size())), tables_.Array(list)}));
}

}  // namespace kiln::gpu
