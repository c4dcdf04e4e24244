// kiln bisect FILE: which rewrite of which pass first gives other results.

#include <cmath>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "aot/tools/bisect.h"
#include "aot/tools/commands.h"
#include "aot/tools/inputs.h"
#include "aot/tools/runner.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/import/import.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

absl::StatusOr<int> Run(const Arguments& args) {
  ASSIGN_OR_RETURN(ImportOptions import, SettleFromInputs(args.All("input")));
  RETURN_IF_ERROR(ReadImportOptions(args, &import));
  ASSIGN_OR_RETURN(auto module, LoadModule(args.positional[0], import));
  RETURN_IF_ERROR(MakeStatic(module.get()));
  ASSIGN_OR_RETURN(const Pipeline pipeline, PipelineNamed(args.Get("pipeline", "cpu")));
  int seed = 0;
  double ulps = 64;
  if (!absl::SimpleAtoi(args.Get("seed", "0"), &seed)) return InvalidArgument("error: --seed takes a number");
  if (!absl::SimpleAtod(args.Get("ulps", "64"), &ulps)) return InvalidArgument("error: --ulps takes a number");
  std::vector<Literal> inputs = SeededArguments(*module, static_cast<uint64_t>(seed));
  if (args.Has("input")) {
    ASSIGN_OR_RETURN(inputs, ReadInputs(args.All("input"), *module));
  }
  ASSIGN_OR_RETURN(BisectResult found, Bisect(*module, pipeline, FindPass, inputs, ulps));
  if (found.pass.empty()) {
    std::printf("%d passes changed the module; it computes the same after each, within %g ulps\n",
                found.changing_passes, ulps);
    CompileOptions compile;
    compile.cpu.levels = {"native"};
    compile.cpu.flush_subnormals = false;
    RunOptions reference;
    reference.backend = "reference";
    RunOptions compiled;
    if (args.Get("pipeline", "cpu") == "gpu") compiled.backend = "gpu-emulated";
    ASSIGN_OR_RETURN(RunResult want, RunModule(module->Clone(), inputs, compile, reference));
    ASSIGN_OR_RETURN(RunResult got, RunModule(std::move(module), inputs, compile, compiled));
    const std::string difference = DifferenceOf(got.results, want.results, ulps);
    if (difference.empty()) {
      std::printf("compiled code computes the same too\n");
      return 0;
    }
    std::printf("compiled code differs: %s\nthe passes are right: look at schedule, buffers and code generation\n",
                difference.c_str());
    return 1;
  }
  std::printf("pass %d of %d that change the module, %s, gives other results: %s\n", found.pass_number,
              found.changing_passes, found.pass.c_str(), found.difference.c_str());
  if (found.rewrite)
    std::printf("by its rewrite %lld (debug { fuel } counts those of all passes)\n",
                static_cast<long long>(found.rewrite));
  const std::string dir = args.Get("out", ".");
  RETURN_IF_ERROR(WriteFile(dir + "/bisect_before.hlo", ToText(*found.before)));
  RETURN_IF_ERROR(WriteFile(dir + "/bisect_after.hlo", ToText(*found.after)));
  std::printf("%s/bisect_before.hlo and %s/bisect_after.hlo are the modules around it\n", dir.c_str(), dir.c_str());
  return 1;
}

}  // namespace

int BisectCommand(const Arguments& args) {
  auto r = Run(args);
  if (!r.ok()) {
    std::fprintf(stderr, "%s\n", std::string(r.status().message()).c_str());
    return 1;
  }
  return *r;
}

}  // namespace kiln
