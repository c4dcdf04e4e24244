// kiln opt FILE: runs passes and prints HLO text, or with --json what they did.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "aot/tools/commands.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/import/import.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

namespace {

// What passes did, each once, in the order of first use.
std::string RecordsInJson(const std::vector<PassRecord>& records) {
  struct Sum {
    std::string pass;
    int64_t runs = 0, changes = 0;
  };
  std::vector<Sum> sums;
  absl::flat_hash_map<std::string, size_t> place;
  for (const PassRecord& r : records) {
    const auto [it, first] = place.try_emplace(r.pass, sums.size());
    if (first) sums.push_back({r.pass, 0, 0});
    ++sums[it->second].runs;
    sums[it->second].changes += r.changed;
  }
  return absl::StrJoin(sums, ",", [](std::string* out, const Sum& s) {
    absl::StrAppend(out, "{\"name\":", JsonQuote(s.pass), ",\"runs\":", s.runs, ",\"changes\":", s.changes, "}");
  });
}

absl::Status Run(const Arguments& args) {
  ImportOptions import;
  RETURN_IF_ERROR(ReadImportOptions(args, &import));
  ASSIGN_OR_RETURN(auto module, LoadModuleToLookAt(args.positional[0], import));
  RETURN_IF_ERROR(SettleDeviceCounts(module.get()));
  const int64_t before = module->instruction_count();
  std::vector<PassRecord> records;
  PipelineOptions options;
  options.verify_each = true;
  options.on_note = [](const std::string& note) { std::fprintf(stderr, "%s\n", note.c_str()); };
  options.stop_after = args.Get("stop-after");
  if (!options.stop_after.empty() && !FindPass(options.stop_after))
    return InvalidArgument("error: no pass is named '", options.stop_after, "'");
  if (args.Has("pipeline")) {
    ASSIGN_OR_RETURN(const Pipeline pipeline, PipelineNamed(args.Get("pipeline")));
    RETURN_IF_ERROR(pipeline.Run(*module, options, &records));
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
    RETURN_IF_ERROR(p.Run(*module, options, &records));
  }
  if (args.Has("json"))
    std::printf("{\"instructions_before\":%lld,\"instructions_after\":%lld,\"passes\":[%s]}\n",
                static_cast<long long>(before), static_cast<long long>(module->instruction_count()),
                RecordsInJson(records).c_str());
  else
    std::fputs(ToText(*module).c_str(), stdout);
  return absl::OkStatus();
}

// Every pass, with the pipelines that run it, or why none does.
std::string ListInJson() {
  absl::flat_hash_map<std::string, std::vector<std::string>> pipelines;
  for (const auto& [name, pipeline] : {std::pair("cpu", CpuPipeline()), std::pair("gpu", GpuPipeline()),
                                       std::pair("gpu deterministic", GpuPipeline({.deterministic = true})),
                                       std::pair("gpu transport host", GpuPipeline({.nccl = false}))})
    for (const std::string& pass : pipeline.Passes()) pipelines[pass].push_back(JsonQuote(name));
  const auto row = [&](std::string* out, const PassInfo& p) {
    absl::StrAppend(out, "{\"name\":", JsonQuote(p.name), ",\"what\":", JsonQuote(p.summary), ",\"pipelines\":[",
                    absl::StrJoin(pipelines[p.name], ","), "]");
    if (p.shelved) absl::StrAppend(out, ",\"why_not\":", JsonQuote(p.shelved));
    *out += "}";
  };
  return absl::StrCat("[", absl::StrJoin(AllPasses(), ",", row), "]\n");
}

// Every pass; with --pipeline, the stages of that one and why each pass stands there.
absl::Status List(const Arguments& args) {
  if (args.Has("json")) {
    std::fputs(ListInJson().c_str(), stdout);
    return absl::OkStatus();
  }
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
