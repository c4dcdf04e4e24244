// The subcommands of `kiln` and the arguments they share. One file each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/import/import.h"

namespace kiln {

struct CompileOptions;

// Command line after the subcommand: `--key value`, `--key=value`, `--flag`, and the rest in order.
struct Arguments {
  std::vector<std::string> positional;
  std::multimap<std::string, std::string> options;

  bool Has(const std::string& key) const { return options.count(key) > 0; }
  std::string Get(const std::string& key, const std::string& otherwise = "") const {
    auto it = options.find(key);
    return it == options.end() ? otherwise : it->second;
  }
  std::vector<std::string> All(const std::string& key) const {
    std::vector<std::string> out;
    for (auto [a, b] = options.equal_range(key); a != b; ++a) out.push_back(a->second);
    return out;
  }
};

// --dim N: the extent of every unbounded dimension. --entry NAME: the function to begin with.
absl::Status ReadImportOptions(const Arguments& args, ImportOptions* import);
// The same with what a configuration says beside them: limits, and an only entry.
absl::Status ReadImportOptions(const Arguments& args, const CompileOptions& config, ImportOptions* import);

// How many devices there are: as the module says, as its collectives name, or else as --devices says (partitions of a
// program with shardings, replicas of another).
absl::Status SettleDevices(const Arguments& args, Module* module);

// 0, or 1 with the message on standard error.
int ExitCode(const absl::Status& status);

// Each returns the exit code: 0 success, 1 wrong input, 2 wrong usage.
int CompileCommand(const Arguments& args);
int LinkCommand(const Arguments& args);
int InspectCommand(const Arguments& args);
int RunCommand(const Arguments& args);
int CheckCommand(const Arguments& args);
int VerifyCommand(const Arguments& args);
int OptCommand(const Arguments& args);
int DiffCommand(const Arguments& args);
int ReduceCommand(const Arguments& args);
int BisectCommand(const Arguments& args);
int TuneCommand(const Arguments& args);
int ExplainCommand(const Arguments& args);
int SizesCommand(const Arguments& args);
int BenchmarkCommand(const Arguments& args);
int ProfileCommand(const Arguments& args);

}  // namespace kiln
