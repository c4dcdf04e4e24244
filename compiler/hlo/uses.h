// Questions about the values that an instruction uses, and about the uses of a value.
#pragma once

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether an operand has elements of another type than the result, as text may have it of floats.
inline bool ChangesType(const Instruction& i) {
  for (const Instruction* o : i.operands())
    if (o->shape().type() != i.shape().type()) return true;
  return false;
}

// Whether every use of `value`, and of all that is made of it, either ends there (`ends(user)`) or keeps what the
// caller asks of values (`keeps(user, value)`), whose uses are asked in turn. Linear in the uses.
template <typename Ends, typename Keeps>
bool EveryUseKeeps(const Instruction* value, const Ends& ends, const Keeps& keeps) {
  std::vector<const Instruction*> work = {value};
  absl::flat_hash_set<const Instruction*> seen;
  while (!work.empty()) {
    const Instruction* v = work.back();
    work.pop_back();
    if (!seen.insert(v).second) continue;
    for (const Instruction* u : v->users()) {
      if (ends(u)) continue;
      if (!keeps(u, v)) return false;
      work.push_back(u);
    }
  }
  return true;
}

}  // namespace kiln
