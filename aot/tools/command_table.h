// The subcommands of kiln as a table: what each takes, and what to say of it.
//
// What: parsing, --help, the manual page and the shell's completion all follow this table, so a command or an option is
//   one entry, in command_table.cc.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "aot/tools/commands.h"

namespace kiln {

enum class Takes { kOne, kNeeded, kAny };

struct Option {
  const char* name;   // without dashes
  const char* value;  // what stands for its value in help; null: a flag
  const char* help;   // a sentence or two, without a full stop at the end
  Takes takes = Takes::kOne;
  char letter = 0;  // a short form, as -o
};

struct Command {
  const char* name;
  int (*run)(const Arguments&);
  const char* operands;  // as usage shows them
  size_t least_operands, most_operands;
  const char* summary;  // a line of the list of commands
  const char* details;  // what else --help says; may be empty
  std::vector<Option> options;
};

// In the order in which help lists them.
const std::vector<Command>& AllCommands();

// Null if there is none.
const Command* FindCommand(const std::string& name);

}  // namespace kiln
