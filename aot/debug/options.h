// What a library tells debuggers and profilers of its program, and what it measures (the config's `debug`).
#pragma once

#include <string>

namespace kiln {

enum class LineTables { kNone, kHlo, kSource };

struct DebugOptions {
  // Kernels are functions of their own, named after operations, and stacks unwind through all code.
  bool symbols = false;
  // Lines of the optimised program's text, or of the user's own files.
  LineTables line_tables = LineTables::kNone;
  // Stands before the relative paths of line tables; empty: they are relative to wherever the debugger runs.
  std::string line_directory;
  // Every operation counts its runs and their time.
  bool profile = false;
  // The first value that is not finite ends the run, and is named.
  bool check_numerics = false;

  // Whether code knows its operations.
  bool NamesOps() const { return symbols || line_tables != LineTables::kNone || profile || check_numerics; }
  // Whether kernels are seen from outside: not inlined, with unwind tables.
  bool KeepsKernels() const { return symbols || line_tables != LineTables::kNone || profile; }
};

}  // namespace kiln
