// Which kernels may run as one: how many run, at least, before and after each instruction of a computation.
//
// What depends on equally many kernels before it, or has equally many after it, is independent: a path from one to the
// other would count it. Making one kernel of such a group changes no number, so that all groups found by one object
// hold together. Cost: linear in the instructions.
#pragma once

#include <algorithm>
#include <vector>

#include "compiler/hlo/instruction.h"
#include "compiler/plan/alias.h"

namespace kiln {

inline bool IsKernel(const Instruction* i) { return InfoOf(i->opcode()).lowering != Lowering::Free; }

struct KernelDepths {
  explicit KernelDepths(const Computation* c) {
    const std::vector<Instruction*> order = c->PostOrder();
    for (const Instruction* i : order) {
      int64_t n = 0;
      for (const auto* sources : {&i->operands(), &i->control_predecessors()})
        for (const Instruction* o : *sources) n = std::max(n, before[o] + IsKernel(o));
      before[i] = n;
      length = std::max(length, n + IsKernel(i));
    }
    for (size_t k = order.size(); k-- > 0;) {
      const Instruction* i = order[k];
      int64_t n = 0;
      for (const auto* readers : {&i->users(), &i->control_successors()})
        for (const Instruction* u : *readers)
          if (const auto at = after.find(u); at != after.end()) n = std::max(n, at->second + IsKernel(u));
      after[i] = n;
    }
  }
  int64_t Slack(const Instruction* i) const { return length - before.at(i) - 1 - after.at(i); }

  absl::flat_hash_map<const Instruction*, int64_t> before, after;
  int64_t length = 0;
};

// The array whose memory a chain of bitcasts shows.
inline const Instruction* WithoutBitcasts(const Instruction* i) {
  while (i->Is(Opcode::Bitcast)) i = i->operand(0);
  return i;
}

// Whether somebody updates `array` in place, or some view of it: readers then have to run before that, or it is copied.
inline bool IsUpdatedInPlace(const Instruction* array) {
  for (const Instruction* u : array->users()) {
    if (u->Is(Opcode::Bitcast) && IsUpdatedInPlace(u)) return true;
    const int64_t outputs = u->shape().IsTuple() ? static_cast<int64_t>(u->shape().tuple().size()) : 1;
    for (int64_t o = 0; o < outputs; ++o)
      if (const int64_t k = InPlaceOperand(u, o); k >= 0 && u->operand(k) == array) return true;
  }
  return false;
}

}  // namespace kiln
