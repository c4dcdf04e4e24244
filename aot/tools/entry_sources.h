// What `kiln compile` makes a library of: a module's only function, several of its functions, or several modules.
//
//   kiln compile lm.mlir ...                                          all public functions
//   kiln compile lm.mlir --entry prefill --entry decode ...           these
//   kiln compile --entry prefill=prefill.mlir --entry decode=decode.hlo ...
#pragma once

#include <string>
#include <vector>

#include "aot/compile.h"
#include "aot/tools/commands.h"

namespace kiln {

// Why the command line names nothing to compile, or two things; empty if it is right.
std::string WhyNoSource(const Arguments& args);

// Reads every entry, with a module for each batch size of the options where it has an unbounded dimension. Only one has
// no name.
absl::StatusOr<std::vector<EntryPrograms>> LoadEntries(const Arguments& args, const CompileOptions& options,
                                                       ImportOptions import);

}  // namespace kiln
