// kiln profile MODULE: runs it, and says where the time goes.
#include <cstdio>

#include "absl/strings/numbers.h"
#include "aot/tools/commands.h"
#include "aot/tools/machine_peak.h"
#include "aot/tools/npy.h"
#include "aot/tools/profile_run.h"
#include "compiler/base/text.h"
#include "compiler/import/import.h"

namespace kiln {
namespace {

absl::StatusOr<std::vector<Literal>> Inputs(const Module& module, const std::vector<std::string>& files) {
  if (files.empty()) return SeededArguments(module, 0);
  std::vector<Shape> shapes;
  for (const Instruction* p : module.entry()->parameters())
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) {
      if (s.IsArray()) shapes.push_back(s);
    });
  if (files.size() != shapes.size())
    return InvalidArgument("error: ", files.size(), " inputs given, the module takes ", shapes.size());
  std::vector<Literal> out;
  for (size_t k = 0; k < files.size(); ++k) {
    ASSIGN_OR_RETURN(Literal l, ReadNpy(files[k], shapes[k]));
    out.push_back(std::move(l));
  }
  return out;
}

absl::Status Run(const Arguments& args) {
  CompileOptions compile;
  if (args.Has("config")) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(args.Get("config")));
    ASSIGN_OR_RETURN(compile, ParseConfig(text, args.Get("config")));
  }
  ImportOptions import;
  RETURN_IF_ERROR(ReadImportOptions(args, compile, &import));
  ASSIGN_OR_RETURN(auto module, LoadModule(args.positional[0], import));
  RETURN_IF_ERROR(MakeStatic(module.get()));
  if (module->replica_count * module->partition_count > 1)
    return Unimplemented(
        "error: kiln profile runs programs of one device; a library built with debug { profile: true } "
        "measures those of several");
  compile.cpu.levels = {args.Get("target", "native")};
  compile.gpu.targets.clear();
  RunOptions run;
  if (!absl::SimpleAtoi(args.Get("threads", "1"), &run.threads) || run.threads < 1)
    return InvalidArgument("error: --threads takes a number of at least 1");
  if (!absl::SimpleAtoi(args.Get("repeat", "20"), &run.repeat) || run.repeat < 1)
    return InvalidArgument("error: --repeat takes a number of at least 1");
  ASSIGN_OR_RETURN(const std::vector<Literal> inputs, Inputs(*module, args.All("input")));
  ASSIGN_OR_RETURN(ProfiledRun measured, RunProfiled(std::move(module), inputs, compile, run, args.Get("trace")));
  Profile& p = measured.profile;
  p.title = args.positional[0].substr(args.positional[0].rfind('/') + 1);
  p.peaks = MeasurePeaks(run.threads);
  if (args.Has("html")) RETURN_IF_ERROR(WriteFile(args.Get("html"), ProfileInHtml(p)));
  std::printf("%s", (args.Has("json") ? ProfileInJson(p) : ProfileInText(p)).c_str());
  return absl::OkStatus();
}

}  // namespace

int ProfileCommand(const Arguments& args) { return ExitCode(Run(args)); }

}  // namespace kiln
