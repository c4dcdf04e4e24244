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
#include "aot/debug/program_op.h"
#include "aot/debug/source_map.h"
#include "codegen/llvm/debug_info.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

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
