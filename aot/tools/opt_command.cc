// kiln opt FILE: runs passes and prints HLO text.
#include <cstdio>

#include "aot/tools/commands.h"
#include "compiler/hlo/printer.h"
#include "compiler/import/import.h"

namespace kiln {

int OptCommand(const Arguments& args) {
  auto module = LoadModule(args.positional.at(0));
  if (!module.ok()) {
    std::fprintf(stderr, "%s\n", std::string(module.status().message()).c_str());
    return 1;
  }
  std::fputs(ToText(**module).c_str(), stdout);
  return 0;
}

}  // namespace kiln
