#include "compiler/hlo/nccl_call.h"

#include <algorithm>

#include "compiler/hlo/replica_groups.h"

namespace kiln {
namespace {

bool HasNcclType(PrimitiveType t) {
  switch (t) {
    case PrimitiveType::S8:
    case PrimitiveType::U8:
    case PrimitiveType::S32:
    case PrimitiveType::U32:
    case PrimitiveType::S64:
    case PrimitiveType::U64:
    case PrimitiveType::F16:
    case PrimitiveType::BF16:
    case PrimitiveType::F32:
    case PrimitiveType::F64:
      return true;
    default:
      return false;
  }
}

std::optional<NcclReduction::Op> OpOf(Opcode op, bool predicates) {
  switch (op) {
    case Opcode::Add:
      return NcclReduction::Op::kSum;
    case Opcode::Multiply:
      return NcclReduction::Op::kProduct;
    case Opcode::Minimum:
      return NcclReduction::Op::kMinimum;
    case Opcode::Maximum:
      return NcclReduction::Op::kMaximum;
    case Opcode::And:
      if (predicates) return NcclReduction::Op::kMinimum;
      return std::nullopt;
    case Opcode::Or:
      if (predicates) return NcclReduction::Op::kMaximum;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Every array keeps its type and its order of bytes.
bool KeepsArrays(const Instruction& i, const std::vector<Shape>& results) {
  if (static_cast<int64_t>(results.size()) != i.operand_count()) return false;
  for (size_t k = 0; k < results.size(); ++k) {
    const Shape& operand = i.operand(static_cast<int64_t>(k))->shape();
    if (!results[k].IsArray() || results[k].type() != operand.type() || results[k].dims() != operand.dims() ||
        results[k].LayoutOrDefault().minor_to_major != operand.LayoutOrDefault().minor_to_major)
      return false;
  }
  return true;
}

// Rows that are gathered in front, whatever the sizes of the groups.
bool IsGatherOfRows(const Instruction& i) {
  return i.Is(Opcode::AllGather) && i.operand_count() == 1 && i.shape().IsArray() && i.attrs().dimensions &&
         *i.attrs().dimensions == Ints{0} && i.operand(0)->shape().dim(0) == 1 && i.shape().HasDefaultLayout() &&
         i.operand(0)->shape().HasDefaultLayout() && i.shape().type() == i.operand(0)->shape().type();
}

NcclCall::Kind KindOf(Opcode op) {
  switch (op) {
    case Opcode::AllReduce:
      return NcclCall::Kind::kAllReduce;
    case Opcode::ReduceScatter:
      return NcclCall::Kind::kReduceScatter;
    case Opcode::AllGather:
      return NcclCall::Kind::kAllGather;
    case Opcode::AllToAll:
      return NcclCall::Kind::kAllToAll;
    case Opcode::CollectivePermute:
      return NcclCall::Kind::kPermute;
    default:
      return NcclCall::Kind::kBroadcast;
  }
}

// An all-reduce leaves a device that is in no group its own array; NCCL would leave nothing.
bool CoversAll(const std::vector<Ints>& groups, int64_t devices) {
  int64_t all = 0;
  for (const Ints& g : groups) all += static_cast<int64_t>(g.size());
  return all == devices;
}

}  // namespace

std::optional<NcclReduction> NcclReductionOf(const Computation& f) {
  const Instruction* r = f.root();
  const PrimitiveType type = r->shape().type();
  if (f.parameters().size() != 2 || r->operand_count() != 2) return std::nullopt;
  for (const Instruction* o : r->operands())
    if (!o->Is(Opcode::Parameter) || o->shape() != r->shape()) return std::nullopt;
  if (r->operand(0) == r->operand(1)) return std::nullopt;
  const bool predicates = type == PrimitiveType::Pred;
  const auto op = OpOf(r->opcode(), predicates);
  if (!op) return std::nullopt;
  using Op = NcclReduction::Op;
  if (predicates) {
    if (*op != Op::kMinimum && *op != Op::kMaximum) return std::nullopt;
    return NcclReduction{*op, PrimitiveType::U8};
  }
  if (IsComplex(type)) {
    if (*op != Op::kSum) return std::nullopt;
    return NcclReduction{*op, type == PrimitiveType::C64 ? PrimitiveType::F32 : PrimitiveType::F64, 2};
  }
  if (!HasNcclType(type)) return std::nullopt;
  return NcclReduction{*op, type, 1, IsFloat(type) && (*op == Op::kMinimum || *op == Op::kMaximum)};
}

absl::StatusOr<std::optional<NcclCall>> NcclCallOf(const Instruction& i, int64_t replicas, int64_t partitions) {
  NcclCall out = {KindOf(i.opcode()), {}, {}, std::nullopt};
  if (i.attrs().to_apply) {
    out.reduction = NcclReductionOf(**i.attrs().to_apply);
    if (!out.reduction) return std::nullopt;
  }
  ASSIGN_OR_RETURN(std::optional<Exchange> exchange, ExchangeOf(i, replicas, partitions));
  if (exchange) {
    out.groups = std::move(exchange->groups);
    out.source = std::move(exchange->source);
    return out;
  }
  const bool broadcast = i.Is(Opcode::CollectiveBroadcast), reduce = i.Is(Opcode::AllReduce);
  if (!IsGatherOfRows(i) && !((broadcast || reduce) && KeepsArrays(i, ResultsOf(i)))) return std::nullopt;
  if (reduce && (*i.attrs().to_apply)->root()->shape().type() != i.operand(0)->shape().type()) return std::nullopt;
  ASSIGN_OR_RETURN(out.groups, DeviceGroups(i, replicas, partitions));
  if (reduce && !CoversAll(out.groups, replicas * partitions)) return std::nullopt;
  return out;
}

}  // namespace kiln
