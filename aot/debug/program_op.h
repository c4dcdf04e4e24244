// An operation of a compiled program, as its user knows it.
#pragma once

#include <cstdint>
#include <string>

#include "aot/debug/options.h"

namespace kiln {

struct SourcePlace {
  std::string op_name;  // scopes and operation: "jit(f)/layer0/dot_general"
  std::string file;
  int64_t line = 0;
};

struct ProgramOp {
  std::string name;    // the instruction's, as in the text: "fusion.26"
  std::string label;   // a short identifier with the user's words: "fusion_26_layer0_dot_general"
  std::string kind;    // of the thunk: "kernel"
  std::string opcode;  // of what a fusion is mostly made of
  SourcePlace source;
  int64_t hlo_line = 0;          // in `hlo`
  int64_t flops = 0, bytes = 0;  // of one run of it, by the cost analysis; none of a loop
  int64_t parent = -1;           // the row of the loop or branch around it
};

}  // namespace kiln
