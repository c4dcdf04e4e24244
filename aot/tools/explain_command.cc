// kiln explain MODULE: what was decided and why, for a terminal or as a page.
#include <cstdio>

#include "absl/strings/match.h"
#include "aot/report/explanation.h"
#include "aot/tools/commands.h"
#include "aot/tools/profile_run.h"
#include "codegen/llvm/cpu_level.h"
#include "compiler/base/text.h"
#include "compiler/import/import.h"
#include "compiler/target/gpu_target.h"

namespace kiln {
namespace {

// A whole run, and each operation.
absl::Status Measure(std::unique_ptr<Module> module, CompileOptions options, Explanation* e) {
  options.cpu.levels = {"native"};
  options.gpu.targets.clear();
  RunOptions run;
  run.repeat = 9;
  const std::vector<Literal> inputs = SeededArguments(*module, 0);
  ASSIGN_OR_RETURN(const ProfiledRun measured, RunProfiled(std::move(module), inputs, options, run, ""));
  e->measured_us = measured.profile.median_us;
  absl::flat_hash_map<std::string, double> us;
  for (const Profile::Row& r : measured.profile.rows) us[r.op.name] = r.self_us;
  for (Explanation::Kernel& k : e->kernels) k.measured_us = us[k.name];
  return absl::OkStatus();
}

// --target, which is a level of CPUs or a GPU.
absl::Status SetTarget(const std::string& target, CompileOptions* o) {
  o->cpu.levels.clear();
  o->gpu.targets.clear();
  if (!absl::StartsWith(target, "sm_")) {
    o->cpu.levels.push_back(target);
    return target == "native" ? absl::OkStatus() : FindCpuLevel(target).status();
  }
  o->gpu.targets.push_back(target);
  return FindGpuTarget(target).status();
}

absl::Status Run(const Arguments& args) {
  CompileOptions options;
  if (args.Has("config")) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(args.Get("config")));
    ASSIGN_OR_RETURN(options, ParseConfig(text, args.Get("config")));
  }
  if (args.Has("target")) RETURN_IF_ERROR(SetTarget(args.Get("target"), &options));
  if (args.Has("run") && options.cpu.levels.empty() && !options.gpu.targets.empty())
    return InvalidArgument("error: --run measures on this machine's CPU, and the program is for ",
                           options.gpu.targets[0]);
  ImportOptions import;
  RETURN_IF_ERROR(ReadImportOptions(args, options, &import));
  ASSIGN_OR_RETURN(auto module, LoadModule(args.positional[0], import));
  RETURN_IF_ERROR(MakeStatic(module.get()));
  ASSIGN_OR_RETURN(Explanation e, Explain(module->Clone(), options));
  e.name = args.positional[0].substr(args.positional[0].rfind('/') + 1);
  if (args.Has("run")) RETURN_IF_ERROR(Measure(std::move(module), options, &e));
  if (args.Has("html")) RETURN_IF_ERROR(WriteFile(args.Get("html"), ExplainInHtml(e)));
  std::fputs((args.Has("json") ? ExplainInJson(e) : ExplainInText(e)).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

int ExplainCommand(const Arguments& args) { return ExitCode(Run(args)); }

}  // namespace kiln
