#include "compiler/hlo/exchange.h"

#include <numeric>

#include "compiler/hlo/replica_groups.h"

namespace kiln {
namespace {

// A function of two scalars of one type, elementwise throughout.
bool IsElementwiseBody(const Computation* f) {
  for (const auto& x : f->instructions())
    if (!x->shape().IsScalar() || !(x->IsElementwise() || x->Is(Opcode::Parameter) || x->Is(Opcode::Constant)))
      return false;
  for (const Instruction* p : f->parameters())
    if (p->shape().type() != f->root()->shape().type()) return false;
  return f->parameters().size() == 2 && f->root()->IsElementwise();
}

// Operands, results and the function that combines them are of one type.
bool CombinesInOneType(const Instruction& i, const std::vector<Shape>& results) {
  const Computation* f = *i.attrs().to_apply;
  if (!IsElementwiseBody(f)) return false;
  const PrimitiveType type = f->root()->shape().type();
  for (size_t k = 0; k < results.size(); ++k)
    if (results[k].type() != type || i.operand(static_cast<int64_t>(k))->shape().type() != type) return false;
  return true;
}

bool AlongTheFirst(const Instruction& i, const std::vector<Shape>& results) {
  if (!i.attrs().dimensions || *i.attrs().dimensions != Ints{0}) return false;
  for (size_t k = 0; k < results.size(); ++k)
    if (!results[k].HasDefaultLayout() || !i.operand(static_cast<int64_t>(k))->shape().HasDefaultLayout()) return false;
  return true;
}

bool KeepsLayouts(const Instruction& i, const std::vector<Shape>& results) {
  for (size_t k = 0; k < results.size(); ++k)
    if (results[k].LayoutOrDefault().minor_to_major !=
        i.operand(static_cast<int64_t>(k))->shape().LayoutOrDefault().minor_to_major)
      return false;
  return true;
}

bool HasTheForm(const Instruction& i, const std::vector<Shape>& results) {
  if (static_cast<int64_t>(results.size()) != i.operand_count() || results.empty()) return false;
  for (size_t k = 0; k < results.size(); ++k)
    if (!results[k].IsArray() || results[k].type() != i.operand(static_cast<int64_t>(k))->shape().type()) return false;
  if (i.Is(Opcode::AllReduce)) return KeepsLayouts(i, results) && CombinesInOneType(i, results);
  if (i.Is(Opcode::CollectivePermute)) return KeepsLayouts(i, results);
  if (i.Is(Opcode::ReduceScatter)) return AlongTheFirst(i, results) && CombinesInOneType(i, results);
  return (i.Is(Opcode::AllGather) || i.Is(Opcode::AllToAll)) && AlongTheFirst(i, results);
}

bool CoverAll(const std::vector<Ints>& groups, int64_t devices) {
  int64_t all = 0;
  for (const Ints& g : groups) {
    if (g.size() != groups[0].size()) return false;
    all += static_cast<int64_t>(g.size());
  }
  return !groups.empty() && all == devices;
}

}  // namespace

bool IsSynchronousCollective(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::AllGather:
    case Opcode::AllReduce:
    case Opcode::AllToAll:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectivePermute:
    case Opcode::RaggedAllToAll:
    case Opcode::ReduceScatter:
      return true;
    default:
      return false;
  }
}

std::vector<Shape> ResultsOf(const Instruction& collective) {
  return collective.shape().IsTuple() ? collective.shape().tuple() : std::vector<Shape>{collective.shape()};
}

absl::StatusOr<std::optional<Exchange>> ExchangeOf(const Instruction& i, int64_t replicas, int64_t partitions) {
  if (!HasTheForm(i, ResultsOf(i))) return std::nullopt;
  Exchange out;
  if (i.Is(Opcode::CollectivePermute)) {
    ASSIGN_OR_RETURN(const auto pairs, DevicePairs(i, replicas, partitions));
    out.groups.emplace_back(static_cast<size_t>(replicas * partitions));
    std::iota(out.groups[0].begin(), out.groups[0].end(), 0);
    out.source.assign(out.groups[0].size(), -1);
    for (const auto& [from, to] : pairs) out.source[static_cast<size_t>(to)] = from;
    return out;
  }
  ASSIGN_OR_RETURN(out.groups, DeviceGroups(i, replicas, partitions));
  if (!CoverAll(out.groups, replicas * partitions)) return std::nullopt;
  if (i.Is(Opcode::AllToAll) || i.Is(Opcode::ReduceScatter))
    for (const Instruction* o : i.operands())
      if (o->shape().dim(0) % out.members()) return std::nullopt;
  return out;
}

absl::StatusOr<bool> CanBeExchange(const Instruction& i, int64_t replicas, int64_t partitions) {
  if (i.Is(Opcode::CollectivePermute)) return true;
  if (!i.Is(Opcode::AllReduce) && !i.Is(Opcode::ReduceScatter) && !i.Is(Opcode::AllGather) && !i.Is(Opcode::AllToAll))
    return false;
  if (i.attrs().to_apply && !IsElementwiseBody(*i.attrs().to_apply)) return false;
  ASSIGN_OR_RETURN(const std::vector<Ints> groups, DeviceGroups(i, replicas, partitions));
  return CoverAll(groups, replicas * partitions);
}

}  // namespace kiln
