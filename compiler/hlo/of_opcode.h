// The instructions of one opcode: for passes that remove others while they go through them.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// In post-order. The list stays good while instructions of other opcodes, or those already visited, are removed.
inline std::vector<Instruction*> OfOpcode(const Computation* c, Opcode opcode) {
  std::vector<Instruction*> out;
  for (Instruction* i : c->PostOrder())
    if (i->Is(opcode)) out.push_back(i);
  return out;
}

}  // namespace kiln
