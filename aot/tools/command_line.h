// Words of a command line as a command's arguments, and what was probably meant where they are not.
#pragma once

#include <string>
#include <vector>

#include "aot/tools/command_table.h"

namespace kiln {

// What became of a command line. `error` is a line or two for the user; empty: none.
struct CommandLine {
  Arguments arguments;
  bool wants_help = false;
  std::string error;
};

// Takes `--key value`, `--key=value`, `--flag`, short forms (`-o value`), and the rest in order; `--` ends options.
CommandLine ReadCommandLine(const Command& command, const std::vector<std::string>& words);

}  // namespace kiln
