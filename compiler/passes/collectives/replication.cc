#include "compiler/passes/collectives/replication.h"

#include <algorithm>

#include "compiler/hlo/replica_groups.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {

struct Replication::Walk {
  const std::vector<Ints>& groups;
  absl::flat_hash_set<const Instruction*> seen;
  std::vector<const Instruction*> work;
};

Replication::Replication(const Module& m) : module_(m) {
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      for (const Computation* f : i->called()) callers_[f].push_back(i.get());
}

// All that a value depends on must be the same, so one walk visits each instruction once. Values that a loop carries
// are the same in every iteration if they start the same and go on the same.
bool Replication::SameWithin(const std::vector<Ints>& groups, const Instruction* i) const {
  Walk walk{groups, {}, {i}};
  while (!walk.work.empty()) {
    const Instruction* x = walk.work.back();
    walk.work.pop_back();
    if (walk.seen.insert(x).second && !Step(x, &walk)) return false;
  }
  return true;
}

bool Replication::SameArgument(const Instruction* p, const Walk& walk) const {
  const bool replicas = p->attrs().parameter_replication &&
                        p->attrs().parameter_replication->text.find("true") != std::string::npos &&
                        p->attrs().parameter_replication->text.find("false") == std::string::npos;
  const bool partitions = p->attrs().sharding && *p->attrs().sharding == "{replicated}";
  for (const Ints& g : walk.groups)
    for (int64_t d : g) {
      const bool same_replica = d / module_.partition_count == g[0] / module_.partition_count;
      const bool same_partition = d % module_.partition_count == g[0] % module_.partition_count;
      if ((!same_replica && !replicas) || (!same_partition && !partitions)) return false;
    }
  return true;
}

bool Replication::SameResult(const Instruction* collective, const Walk& walk) const {
  const auto groups = DeviceGroups(*collective, module_.replica_count, module_.partition_count);
  if (!groups.ok()) return false;
  return std::all_of(walk.groups.begin(), walk.groups.end(), [&](const Ints& g) {
    return std::any_of(groups->begin(), groups->end(), [&](const Ints& whole) {
      return std::all_of(g.begin(), g.end(),
                         [&](int64_t d) { return std::find(whole.begin(), whole.end(), d) != whole.end(); });
    });
  });
}

bool Replication::FromLoop(const Instruction* loop, int64_t k, Walk* walk) const {
  const Instruction *init = InitOf(loop, k), *root = (*loop->attrs().body)->root();
  if (!init || !root->Is(Opcode::Tuple)) return false;
  walk->work.push_back(init);
  walk->work.push_back(root->operand(k));
  return true;
}

bool Replication::FromCallers(const Instruction* p, Walk* walk) const {
  const auto it = callers_.find(p->parent());
  if (it == callers_.end()) return false;
  for (const Instruction* call : it->second) {
    if (!call->Is(Opcode::Call)) return false;
    walk->work.push_back(call->operand(*p->attrs().parameter_number));
  }
  return true;
}

bool Replication::Step(const Instruction* x, Walk* walk) const {
  if (!x->control_predecessors().empty()) return false;
  const bool element = x->Is(Opcode::GetTupleElement);
  if (element && x->operand(0)->Is(Opcode::While)) {
    walk->work.push_back((*x->operand(0)->attrs().condition)->root());
    return FromLoop(x->operand(0), *x->attrs().tuple_index, walk);
  }
  if (element && x->operand(0)->Is(Opcode::Parameter) && x->parent() != module_.entry()) {
    const auto it = callers_.find(x->parent());
    if (it == callers_.end()) return false;
    return std::all_of(it->second.begin(), it->second.end(), [&](const Instruction* loop) {
      return loop->Is(Opcode::While) && FromLoop(loop, *x->attrs().tuple_index, walk);
    });
  }
  switch (x->opcode()) {
    case Opcode::Parameter:
      return x->parent() == module_.entry() ? SameArgument(x, *walk) : FromCallers(x, walk);
    case Opcode::Call:
      walk->work.push_back((*x->attrs().to_apply)->root());
      return true;
    case Opcode::AllReduce:
    case Opcode::AllGather:
    case Opcode::CollectiveBroadcast:
      return SameResult(x, *walk);
    case Opcode::ReplicaId:
      return std::all_of(walk->groups.begin(), walk->groups.end(), [&](const Ints& g) {
        return std::all_of(g.begin(), g.end(),
                           [&](int64_t d) { return d / module_.partition_count == g[0] / module_.partition_count; });
      });
    case Opcode::PartitionId:
      return std::all_of(walk->groups.begin(), walk->groups.end(), [&](const Ints& g) {
        return std::all_of(g.begin(), g.end(),
                           [&](int64_t d) { return d % module_.partition_count == g[0] % module_.partition_count; });
      });
    case Opcode::Rng:
    case Opcode::CustomCall:
    case Opcode::While:
    case Opcode::Conditional:
      return false;
    default:
      break;
  }
  if (x->HasSideEffect() || x->HasTrait(Async)) return false;
  for (const Computation* f : x->called())
    for (const auto& i : f->instructions())
      if (!i->IsElementwise() && !i->Is(Opcode::Parameter) && !i->Is(Opcode::Constant) && !i->Is(Opcode::Tuple) &&
          !i->Is(Opcode::GetTupleElement))
        return false;
  for (const Instruction* o : x->operands()) walk->work.push_back(o);
  return true;
}

}  // namespace kiln
