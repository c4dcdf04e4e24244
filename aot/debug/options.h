// What a library tells debuggers and profilers of its program, what it measures and what it checks (the config's
// `debug`).
#pragma once

#include <string>

#include "codegen/llvm/sanitizer.h"

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
  // Overwrites every arena slice with a pattern as soon as nothing may read it any more (for tests).
  bool poison_freed = false;
  // Every element that a kernel reads or writes one by one is checked against its array; an overrun names both and
  // aborts.
  bool bounds_check = false;
  Sanitizer sanitizer = Sanitizer::kNone;

  // Whether code knows its operations.
  bool NamesOps() const { return symbols || line_tables != LineTables::kNone || profile || check_numerics; }
  // Whether kernels are seen from outside: not inlined, with unwind tables.
  bool KeepsKernels() const { return symbols || line_tables != LineTables::kNone || profile; }
};

}  // namespace kiln
