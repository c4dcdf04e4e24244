// kiln verify FILE...: parses and verifies; one line for each file.
#include <cstdio>

#include "aot/tools/commands.h"
#include "compiler/import/import.h"

namespace kiln {

int VerifyCommand(const Arguments& args) {
  ImportOptions import;
  if (absl::Status s = ReadImportOptions(args, &import); !s.ok()) {
    std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
    return 2;
  }
  int bad = 0;
  for (const std::string& file : args.positional) {
    auto module = LoadModuleToLookAt(file, import);
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
