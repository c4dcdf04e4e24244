// random_modules FIRST COUNT: compares evaluator, compiled code and compiled code without optimisation on the modules
// of COUNT seeds. Prints each seed that differs, and leaves its text beside it with --keep DIR.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "aot/tools/ulp.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/pipeline/registry.h"
#include "tests/random/arguments.h"
#include "tests/random/generator.h"

namespace kiln {
namespace {

absl::Status Same(const std::vector<Literal>& got, const std::vector<Literal>& want) {
  for (size_t r = 0; r < want.size(); ++r) {
    const UlpError e = LargestUlpError(got[r], want[r]);
    if (e.ulps > 0) return InvalidArgument("result ", r, " element ", e.element, ": ", e.got, ", expected ", e.want);
  }
  return absl::OkStatus();
}

absl::Status Try(uint64_t seed, const RunOptions& compiled, std::string* text) {
  std::unique_ptr<Module> m = RandomModule(seed);
  *text = ToText(*m);
  RETURN_IF_ERROR(VerifyModule(*m));
  const std::vector<Literal> args = SmallArguments(*m, seed);
  CompileOptions full, plain;
  full.cpu_levels = plain.cpu_levels = {"native"};
  full.flush_subnormals = plain.flush_subnormals = false;
  full.poison_freed = true;
  plain.pipeline.disabled = {
      "algsimp", "cse", "constant-folding", "cpu-instruction-fusion", "transpose-folding", "conditional-simplifier"};
  RunOptions reference;
  reference.backend = "reference";
  ASSIGN_OR_RETURN(RunResult want, RunModule(m->Clone(), args, full, reference));
  ASSIGN_OR_RETURN(RunResult got, RunModule(m->Clone(), args, full, compiled));
  if (absl::Status s = Same(got.results, want.results); !s.ok()) return InvalidArgument("optimised: ", s.message());
  ASSIGN_OR_RETURN(RunResult raw, RunModule(std::move(m), args, plain, compiled));
  if (absl::Status s = Same(raw.results, want.results); !s.ok()) return InvalidArgument("unoptimised: ", s.message());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: random_modules FIRST COUNT [--keep DIR] [--backend cpu|gpu-emulated]\n");
    return 2;
  }
  const uint64_t first = std::strtoull(argv[1], nullptr, 10), count = std::strtoull(argv[2], nullptr, 10);
  const char* keep = nullptr;
  RunOptions compiled;
  compiled.check_accesses = true;
  for (int k = 3; k + 1 < argc; k += 2) {
    if (!std::strcmp(argv[k], "--keep")) keep = argv[k + 1];
    if (!std::strcmp(argv[k], "--backend")) compiled.backend = argv[k + 1];
  }
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string text;
    const absl::Status s = Try(seed, compiled, &text);
    if (s.ok()) continue;
    ++failed;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), std::string(s.message()).c_str());
    if (keep)
      if (absl::Status w = WriteFile(absl::StrCat(keep, "/", seed, ".hlo"), text); !w.ok())
        std::printf("%s\n", std::string(w.message()).c_str());
    std::fflush(stdout);
  }
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(count - failed),
              static_cast<unsigned long long>(failed));
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
