// A sum over the partitions of each replica, some linear steps, and a sum over the replicas become one sum over all
// devices.
//
// The steps between may add (or subtract) values that every partition has alike: those would be counted once for each
// partition, and are divided by their number first, in floats only. All or nothing of a chain is rewritten.
#include <numeric>

#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/replication.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool SameOnEveryDevice(const Instruction* i) {
  const Module& m = *i->parent()->module();
  Ints devices(static_cast<size_t>(m.replica_count * m.partition_count));
  std::iota(devices.begin(), devices.end(), 0);
  return Replication(m).SameWithin({devices}, i);
}

bool Sums(const Instruction* i) {
  return i->Is(Opcode::AllReduce) && i->operand_count() == 1 && i->shape().IsArray() && IsFloat(i->shape().type()) &&
         (*i->attrs().to_apply)->root()->Is(Opcode::Add);
}

bool OverAll(const Instruction* i) { return !i->attrs().replica_groups || *i->attrs().replica_groups == "{}"; }

bool CrossReplica(const Instruction* i) { return Sums(i) && !i->attrs().channel_id && OverAll(i); }

// Over all partitions of a replica: a channel, and each replica a group of its own.
bool CrossPartition(const Instruction* i, const Module& m) {
  if (!Sums(i) || !i->attrs().channel_id || i->attrs().use_global_device_ids.value_or(false) ||
      !i->attrs().replica_groups)
    return false;
  std::string each = "{";
  for (int64_t r = 0; r < m.replica_count; ++r) absl::StrAppend(&each, r ? ",{" : "{", r, "}");
  return i->attrs().replica_groups->text == each + "}";
}

struct Chain {
  std::vector<Instruction*> steps;  // from the outer sum's operand down
  Instruction* inner = nullptr;
};

std::optional<Chain> Match(const Instruction* outer, const Module& m) {
  Chain chain;
  Instruction* i = outer->operand(0);
  while (i->users().size() == 1) {
    if (CrossPartition(i, m)) {
      chain.inner = i;
      return chain;
    }
    chain.steps.push_back(i);
    switch (i->opcode()) {
      case Opcode::Reshape:
      case Opcode::Transpose:
      case Opcode::Bitcast:
        i = i->operand(0);
        break;
      case Opcode::Add:
      case Opcode::Subtract:
        if (SameOnEveryDevice(i->operand(1)))
          i = i->operand(0);
        else if (SameOnEveryDevice(i->operand(0)))
          i = i->operand(1);
        else
          return std::nullopt;
        break;
      case Opcode::Multiply:
        if (!SameOnEveryDevice(i->operand(1))) return std::nullopt;
        i = i->operand(0);
        break;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<bool> ArCrsCombiner(Module& m, PassContext& ctx) {
  if (m.partition_count < 2) return false;
  return ExpandEach(
      m, ctx, [&](Instruction* i) { return CrossReplica(i) && Match(i, m).has_value(); },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Chain chain = *Match(i, m);
        for (Instruction* s : chain.steps) {
          if (!s->Is(Opcode::Add) && !s->Is(Opcode::Subtract)) continue;
          const int64_t other = SameOnEveryDevice(s->operand(1)) ? 1 : 0;
          s->ReplaceOperand(other, (Expr(s->operand(other)) / static_cast<double>(m.partition_count)).get());
        }
        const int64_t channel = *chain.inner->attrs().channel_id;
        chain.inner->ReplaceAllUsesWith(chain.inner->operand(0));
        i->parent()->Remove(chain.inner);
        Instruction* all = i->parent()->AddClone(i, i->shape(), i->operands());
        std::string everyone = "{{";
        for (int64_t d = 0; d < m.replica_count * m.partition_count; ++d) absl::StrAppend(&everyone, d ? "," : "", d);
        all->mutable_attrs().replica_groups = everyone + "}}";
        all->mutable_attrs().channel_id = channel;
        all->mutable_attrs().use_global_device_ids = true;
        return all;
      });
}

}  // namespace kiln
