// all-reduce of what a group has alike: a sum is a product with the size of the group; a largest, smallest, and or or
// is the value itself. Collectives of groups of one device move nothing.
#include "compiler/hlo/replica_groups.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/replication.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// The groups of `i` if they have the same size and leave no device out; otherwise none.
std::vector<Ints> EvenGroups(const Module& m, const Instruction* i) {
  auto groups = DeviceGroups(*i, m.replica_count, m.partition_count);
  if (!groups.ok() || groups->empty()) return {};
  int64_t all = 0;
  for (const Ints& g : *groups) {
    if (g.size() != (*groups)[0].size()) return {};
    all += static_cast<int64_t>(g.size());
  }
  return all == m.replica_count * m.partition_count ? *groups : std::vector<Ints>();
}

// A channel without global ids may lead to another program.
bool AcrossPrograms(const Instruction* i) { return GroupModeOf(*i) == GroupMode::kReplicasOfAllPartitions; }

bool MovesNothing(const Module& m, const Instruction* i) {
  if (!i->Is(Opcode::AllReduce) && !i->Is(Opcode::AllGather) && !i->Is(Opcode::ReduceScatter)) return false;
  if (i->operand_count() != 1 || i->shape() != i->operand(0)->shape() || AcrossPrograms(i)) return false;
  const std::vector<Ints> groups = EvenGroups(m, i);
  return !groups.empty() && groups[0].size() == 1;
}

// The argument that an asynchronous collective hands on; null if it does anything else.
Instruction* HandedOn(const Module& m, const Instruction* done) {
  if (!done->Is(Opcode::AsyncDone) || !done->operand(0)->Is(Opcode::AsyncStart)) return nullptr;
  Instruction* start = done->operand(0);
  const Instruction* root = (*start->attrs().calls)->root();
  if (start->users().size() != 1 || !MovesNothing(m, root) || !root->operand(0)->Is(Opcode::Parameter)) return nullptr;
  return start->operand(*root->operand(0)->attrs().parameter_number);
}

bool HoldsExactly(PrimitiveType t, int64_t n) {
  const Element e = Literal::Of(t, static_cast<double>(n)).Get(0);
  return IsIntegral(t) ? e.i == n : IsFloat(t) && e.re == static_cast<double>(n);
}

bool Reducible(const Instruction* i, int64_t group) {
  if (i->attrs().constrain_layout.value_or(false) || (*i->attrs().to_apply)->instruction_count() != 3) return false;
  switch ((*i->attrs().to_apply)->root()->opcode()) {
    case Opcode::Add:
      return HoldsExactly(i->shape().type(), group);
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::And:
    case Opcode::Or:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<bool> AllReduceSimplifier(Module& m, PassContext& ctx) {
  const Replication replication(m);
  ASSIGN_OR_RETURN(const bool changed,
                   ExpandEach(
                       m, ctx,
                       [&](Instruction* i) {
                         if (MovesNothing(m, i) || HandedOn(m, i)) return true;
                         if (!i->Is(Opcode::AllReduce) || !i->shape().IsArray() || AcrossPrograms(i)) return false;
                         const std::vector<Ints> groups = EvenGroups(m, i);
                         return !groups.empty() && Reducible(i, static_cast<int64_t>(groups[0].size())) &&
                                replication.SameWithin(groups, i->operand(0));
                       },
                       [&](Instruction* i) -> absl::StatusOr<Instruction*> {
                         if (Instruction* argument = HandedOn(m, i)) return argument;
                         if (MovesNothing(m, i) || !(*i->attrs().to_apply)->root()->Is(Opcode::Add))
                           return i->operand(0);
                         return (Expr(i->operand(0)) * static_cast<double>(EvenGroups(m, i)[0].size())).get();
                       }));
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder())
      if (changed && i->Is(Opcode::AsyncStart) && i->users().empty() && !i->IsRoot()) c->Remove(i);
  return changed;
}

}  // namespace kiln
