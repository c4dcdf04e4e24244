// kiln verify FILE...: parses and verifies; one line for each file.
#include <cstdio>

#include "aot/tools/commands.h"
#include "compiler/import/import.h"

namespace kiln {

int VerifyCommand(const Arguments& args) {
  int bad = 0;
  for (const std::string& file : args.positional) {
    auto module = LoadModule(file);
    if (module.ok()) {
      std::printf("OK %s\n", file.c_str());
    } else {
      std::printf("ERROR %s\n", std::string(module.status().message()).c_str());
      ++bad;
    }
  }
  return bad ? 1 : 0;
}

}  // namespace kiln
