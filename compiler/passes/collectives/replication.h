// Whether a value is the same on several devices.
//
// What: follows a value back to what it is computed from, through calls and loops.
// Guarantees: conservative. What may differ: parameters that the program does not mark as replicated, queues, random
//   numbers, calls of the user's functions, conditionals, and collectives over other groups.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

class Replication {
 public:
  explicit Replication(const Module& m);

  // Whether `i`, at whichever time, is the same on all devices of each group.
  bool SameWithin(const std::vector<Ints>& groups, const Instruction* i) const;

 private:
  struct Walk;
  bool Step(const Instruction* i, Walk* walk) const;
  bool FromLoop(const Instruction* loop, int64_t k, Walk* walk) const;
  bool FromCallers(const Instruction* parameter, Walk* walk) const;
  bool SameArgument(const Instruction* parameter, const Walk& walk) const;
  bool SameResult(const Instruction* collective, const Walk& walk) const;

  const Module& module_;
  absl::flat_hash_map<const Computation*, std::vector<const Instruction*>> callers_;
};

}  // namespace kiln
