// Elements of a loop's state that its iterations do nothing with but add to them.
#pragma once

#include <optional>
#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// What an iteration adds: `leaf`, behind operations that a sum may stand before as well as behind.
struct LoopTerm {
  std::vector<Instruction*> chain;  // from what is added to what is made of the leaf
  Instruction* leaf = nullptr;
  bool is_subtracted = false;
  bool is_used_once = true;                 // nothing else reads the leaf or what is made of it
  PrimitiveType type = PrimitiveType::F32;  // the widest of all, in which iterations are added up
};

struct LoopSum {
  int64_t element = 0;
  std::vector<LoopTerm> terms;
};

// In the order of the elements. Floats and integers; floats of 16 bits at least.
std::vector<LoopSum> LoopSums(const Instruction* loop);

}  // namespace kiln
