// The operations of a planned program as its user knows them: what profiles, line tables and checks name.
//
// What: a row for each instruction that a run executes by itself (a kernel, a copy, a loop, ...), in the order of the
//   run; the optimised program as text; and for every instruction, those inside fusions too, its place for debuggers.
// Guarantees: the same program gives the same rows, names and text.
// Cost: linear in the program.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aot/debug/options.h"
#include "aot/debug/source_map.h"
#include "codegen/llvm/debug_info.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

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

struct OpTable {
  std::vector<ProgramOp> ops;
  absl::flat_hash_map<const Instruction*, int64_t> of;  // rows
  int64_t first = 0;                                    // the number of the first row in the whole library
  std::string hlo;                                      // the text; large constants are left out
  DebugProgram debug;
};

// `hlo_file`: what the text will be called. `options` choose which lines `debug` names.
OpTable MakeOpTable(const Module& module, const ThunkSequence& thunks, const std::string& hlo_file,
                    const DebugOptions& options);

}  // namespace kiln
