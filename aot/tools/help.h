// What the table of commands says, for people and for shells.
#pragma once

#include <string>

#include "aot/tools/command_table.h"

namespace kiln {

// "kiln compile MODULE --name NAME --out DIR [OPTION]...", on one line.
std::string UsageOf(const Command& command);

std::string HelpOf(const Command& command);
std::string HelpOfAll();

// kiln(1), for man. The same for the same table and version.
std::string ManualPage();

// For bash's completion of commands, options and files.
std::string BashCompletion();

// Versions of kiln, of LLVM in it, and of the types that its libraries share with their callers.
std::string VersionText();

}  // namespace kiln
