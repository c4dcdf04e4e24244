// The product that a fused computation is around.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

inline bool IsProduct(const Instruction* i) { return i->Is(Opcode::Dot) || i->Is(Opcode::Convolution); }

// The product of which `root`, of a fused computation, is made; null if there is none.
inline const Instruction* ProductBehind(const Instruction* root) {
  std::vector<const Instruction*> work = {root};
  absl::flat_hash_set<const Instruction*> seen;
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!seen.insert(i).second) continue;
    if (IsProduct(i)) return i;
    work.insert(work.end(), i->operands().begin(), i->operands().end());
  }
  return nullptr;
}

}  // namespace kiln
