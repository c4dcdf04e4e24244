// Which line of the user's program an instruction stands for.
//
// What: reads what front ends leave in `metadata={...}`: op_name, source_file and source_line, or a stack_frame_id of
//   the tables at the head of the module. A fusion stands for what it is mostly made of. Without metadata, the place is
//   the line of the module as it was read; a copy or transpose without any is part of the named operation that reads
//   it.
// Guarantees: what is not known is empty; nothing is guessed from names.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aot/debug/program_op.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

class SourceMap {
 public:
  explicit SourceMap(const Module& module);
  SourcePlace Of(const Instruction* i) const;

 private:
  SourcePlace Own(const Instruction* i) const;
  SourcePlace Stated(const Instruction* i) const;
  SourcePlace OfReader(const Instruction* i) const;

  const std::string file_;                                                // of the module
  absl::flat_hash_map<int64_t, std::pair<std::string, int64_t>> frames_;  // the innermost file and line of each
};

// The instruction of a fused computation that says best what the fusion is for: a product before a reduction before
// anything else, and the root where nothing stands out.
const Instruction* MainOperation(const Instruction* i);

}  // namespace kiln
