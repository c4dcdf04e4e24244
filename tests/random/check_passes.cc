// check_passes FIRST COUNT [REGEX]: every pass whose name holds a match alone on the modules of COUNT seeds, and
// without an expression also both pipelines and the planner. Prints the first violation of each spec by each pass, and
// how many there were.
#include <cstdio>
#include <map>
#include <regex>

#include "absl/strings/numbers.h"
#include "compiler/pipeline/registry.h"
#include "tests/random/pass_specs.h"

namespace kiln {
namespace {

int Main(int argc, char** argv) {
  uint64_t first = 0, count = 0;
  if (argc < 3 || argc > 4 || !absl::SimpleAtoi(argv[1], &first) || !absl::SimpleAtoi(argv[2], &count)) {
    std::fprintf(stderr, "usage: check_passes FIRST COUNT [REGEX]\n");
    return 2;
  }
  const std::regex wanted(argc > 3 ? argv[3] : "");
  std::map<std::string, uint64_t> violations;
  const auto run = [&](const std::string& what, const auto& check) {
    for (uint64_t seed = first; seed < first + count; ++seed)
      check(seed, [&](const std::string& spec, const std::string& why) {
        const std::string key = absl::StrCat(what, ": ", spec);
        if (violations[key]++ > 0) return;
        std::printf("%s: seed %llu: %s\n", key.c_str(), static_cast<unsigned long long>(seed), why.c_str());
        std::fflush(stdout);
      });
  };
  for (const PassInfo& pass : AllPasses())
    if (std::regex_search(pass.name, wanted))
      run(pass.name, [&](uint64_t seed, const OnViolation& tell) { CheckPassAlone(pass, seed, tell); });
  if (argc == 3) run("in place", CheckPassesInPlace);
  for (const auto& [key, times] : violations)
    std::printf("%s: %llu times\n", key.c_str(), static_cast<unsigned long long>(times));
  std::printf("%zu kinds of violations\n", violations.size());
  return violations.empty() ? 0 : 1;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
