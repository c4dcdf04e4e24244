// Whether a value is the same on every device.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Conservative: true for what is computed from constants, and from sums over all replicas, alone. Parameters, queues,
// random numbers, the device's own number, loops and calls may differ.
inline bool SameOnEveryDevice(const Instruction* i) {
  absl::flat_hash_set<const Instruction*> seen;
  std::vector<const Instruction*> work = {i};
  while (!work.empty()) {
    const Instruction* x = work.back();
    work.pop_back();
    if (!seen.insert(x).second) continue;
    const bool groups = x->attrs().replica_groups && *x->attrs().replica_groups != "{}";
    if (x->Is(Opcode::AllReduce) && !groups && !x->attrs().channel_id && x->parent()->module()->partition_count == 1)
      continue;
    if (x->Is(Opcode::Parameter) || x->HasSideEffect() || x->HasTrait(Collective) || x->HasTrait(Async) ||
        x->Is(Opcode::ReplicaId) || x->Is(Opcode::PartitionId) || x->Is(Opcode::Rng) || x->Is(Opcode::CustomCall) ||
        !x->called().empty())
      return false;
    for (const Instruction* o : x->operands()) work.push_back(o);
  }
  return true;
}

}  // namespace kiln
