// kiln diff FILE: compiled code against the reference evaluator on the same seeded inputs.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "absl/strings/numbers.h"
#include "aot/tools/commands.h"
#include "aot/tools/runner.h"
#include "aot/tools/ulp.h"
#include "compiler/import/import.h"

namespace kiln {
namespace {

absl::StatusOr<int> Run(const Arguments& args) {
  ImportOptions import;
  RETURN_IF_ERROR(ReadDim(args, &import));
  ASSIGN_OR_RETURN(auto module, LoadModule(args.positional[0], import));
  RETURN_IF_ERROR(MakeStatic(module.get()));
  int seed = 0;
  if (!absl::SimpleAtoi(args.Get("seed", "0"), &seed)) return InvalidArgument("error: --seed takes a number");
  const std::vector<Literal> inputs = SeededArguments(*module, static_cast<uint64_t>(seed));
  CompileOptions compile;
  compile.cpu_levels = {"native"};
  compile.flush_subnormals = false;  // the evaluator keeps them
  RunOptions reference, compiled;
  reference.backend = "reference";
  compiled.backend = args.Get("backend", "cpu");
  ASSIGN_OR_RETURN(RunResult want, RunModule(module->Clone(), inputs, compile, reference));
  ASSIGN_OR_RETURN(RunResult got, RunModule(std::move(module), inputs, compile, compiled));
  double limit = HUGE_VAL;
  if (args.Has("ulps") && !absl::SimpleAtod(args.Get("ulps"), &limit))
    return InvalidArgument("error: --ulps takes a number");
  bool differs = false;
  for (size_t k = 0; k < want.results.size(); ++k) {
    if (!want.results[k].shape().IsArray()) continue;
    const UlpError e = LargestUlpError(got.results[k], want.results[k]);
    std::printf("result %zu %s: largest error %.1f ulps", k, want.results[k].shape().ToString(false).c_str(), e.ulps);
    if (e.ulps > 0)
      std::printf(" at element %lld: compiled %s, reference %s", static_cast<long long>(e.element), e.got.c_str(),
                  e.want.c_str());
    std::printf("\n");
    differs = differs || (e.ulps > 0 && !IsFloat(want.results[k].type()) && !IsComplex(want.results[k].type())) ||
              std::isinf(e.ulps) || e.ulps > limit;
  }
  return differs ? 1 : 0;
}

}  // namespace

int DiffCommand(const Arguments& args) {
  auto r = Run(args);
  if (!r.ok()) {
    std::fprintf(stderr, "%s\n", std::string(r.status().message()).c_str());
    return 1;
  }
  return *r;
}

}  // namespace kiln
