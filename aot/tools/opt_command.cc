// kiln opt FILE: runs passes and prints HLO text.
#include <cstdio>

#include "absl/strings/str_split.h"
#include "aot/tools/commands.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/import/import.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

namespace {

absl::Status Run(const Arguments& args) {
  ImportOptions import;
  RETURN_IF_ERROR(ReadImportOptions(args, &import));
  ASSIGN_OR_RETURN(auto module, LoadModuleToLookAt(args.positional[0], import));
  RETURN_IF_ERROR(SettleDeviceCounts(module.get()));
  PipelineOptions options;
  options.verify_each = true;
  options.on_note = [](const std::string& note) { std::fprintf(stderr, "%s\n", note.c_str()); };
  options.stop_after = args.Get("stop-after");
  if (!options.stop_after.empty() && !FindPass(options.stop_after))
    return InvalidArgument("error: no pass is named '", options.stop_after, "'");
  if (args.Has("pipeline")) {
    ASSIGN_OR_RETURN(const Pipeline pipeline, PipelineNamed(args.Get("pipeline")));
    RETURN_IF_ERROR(pipeline.Run(*module, options));
  }
  if (args.Has("passes")) {
    const std::vector<std::string> names = absl::StrSplit(args.Get("passes"), ',', absl::SkipEmpty());
    Pipeline p("opt", FindPass);
    // One pass alone can be tried on a program as a front end wrote it.
    const PassInfo* first = names.empty() ? nullptr : FindPass(names[0]);
    if (CheckFacts(*module, fact::LaidOut).ok())
      options.initial_facts |= fact::LaidOut;
    else if (first && (first->needs & (fact::LaidOut | fact::Fused)))
      p.Add("layout-assignment");
    if (first && (first->needs & fact::Fused)) p.Add("reshape-decomposer").Add("fusion-wrapper");
    for (const std::string& name : names) p.Add(name);
    RETURN_IF_ERROR(p.Run(*module, options));
  }
  std::fputs(ToText(*module).c_str(), stdout);
  return absl::OkStatus();
}

// Every pass; with --pipeline, the stages of that one and why each pass stands there.
absl::Status List(const Arguments& args) {
  if (!args.Has("pipeline")) {
    for (const PassInfo& p : AllPasses())
      std::printf("%-32s %s%s%s\n", p.name, p.summary, p.shelved ? "; no compile runs it: " : "",
                  p.shelved ? p.shelved : "");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Pipeline pipeline, PipelineNamed(args.Get("pipeline")));
  for (const Pipeline::Stage& stage : pipeline.stages()) {
    if (stage.steps.empty()) continue;
    std::printf("%s%s: %s\n", stage.name.c_str(), stage.repeat ? ", until nothing changes" : "", stage.holds.c_str());
    for (const Pipeline::Step& step : stage.steps) std::printf("  %-38s %s\n", step.pass.c_str(), step.why.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int OptCommand(const Arguments& args) {
  if (args.Has("list")) {
    const absl::Status listed = List(args);
    if (!listed.ok()) std::fprintf(stderr, "%s\n", std::string(listed.message()).c_str());
    return listed.ok() ? 0 : 2;
  }
  if (args.positional.empty()) {
    std::fprintf(stderr, "kiln opt: a file is needed\n");
    return 2;
  }
  return ExitCode(Run(args));
}

}  // namespace kiln
