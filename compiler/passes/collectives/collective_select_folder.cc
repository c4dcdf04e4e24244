// A permuted choice that every sending device makes the same way is the permuted one of the two.
//
// The predicate is a scalar, or one repeated, that each source of the permutation computes from its own number.
#include "compiler/hlo/replica_groups.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/device_values.h"

namespace kiln {
namespace {

// The first numbers of "{{0,1},{1,2}}".
absl::StatusOr<Ints> Sources(const Instruction* permute) {
  if (!permute->attrs().source_target_pairs) return Ints();
  ASSIGN_OR_RETURN(const std::vector<Ints> pairs, ParseReplicaGroups(permute->attrs().source_target_pairs->text));
  Ints out;
  for (const Ints& p : pairs) out.push_back(p[0]);
  return out;
}

const Instruction* ScalarBehind(const Instruction* i) {
  while (i->Is(Opcode::Convert) || i->Is(Opcode::Broadcast)) i = i->operand(0);
  return i;
}

// A comparison of the number that the permutation's ids count with a constant.
bool ComparesOwnNumber(const Instruction* predicate, Opcode number) {
  const Instruction* compare = ScalarBehind(predicate);
  if (!compare->Is(Opcode::Compare)) return false;
  const Instruction *a = ScalarBehind(compare->operand(0)), *b = ScalarBehind(compare->operand(1));
  return (a->Is(number) && b->Is(Opcode::Constant)) || (b->Is(number) && a->Is(Opcode::Constant));
}

// A layout that is not written is row major.
bool SameArray(const Shape& a, const Shape& b) {
  return a.Compatible(b) && a.LayoutOrDefault() == b.LayoutOrDefault() && !a.HasDynamic() && !b.HasDynamic();
}

// The operand that all sources send; null if they differ or that is not known.
absl::StatusOr<Instruction*> Sent(const Instruction* permute) {
  const Instruction* select = permute->operand(0);
  const GroupMode mode = GroupModeOf(*permute);
  if (!select->Is(Opcode::Select) || (mode != GroupMode::kReplicas && mode != GroupMode::kPartitions)) return nullptr;
  const bool replicas = mode == GroupMode::kReplicas;
  if (!ComparesOwnNumber(select->operand(0), replicas ? Opcode::ReplicaId : Opcode::PartitionId)) return nullptr;
  ASSIGN_OR_RETURN(const Ints sources, Sources(permute));
  std::optional<int64_t> choice;
  for (int64_t id : sources) {
    const std::optional<int64_t> here = DeviceValues(replicas ? id : 0, replicas ? 0 : id).Of(select->operand(0));
    if (!here || (choice && *choice != *here)) return nullptr;
    choice = here;
  }
  return choice ? select->operand(*choice ? 1 : 2) : nullptr;
}

}  // namespace

absl::StatusOr<bool> CollectiveSelectFolder(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::CollectivePermute) || i->operand_count() != 1) continue;
      ASSIGN_OR_RETURN(Instruction* const sent, Sent(i));
      if (!sent || !SameArray(sent->shape(), i->operand(0)->shape()) || !ctx.Take()) continue;
      i->ReplaceOperand(0, sent);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
