// kiln run MODULE: compiles, links and runs; writes results.

#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "aot/package/manifest.h"
#include "aot/tools/commands.h"
#include "aot/tools/inputs.h"
#include "aot/tools/npy.h"
#include "aot/tools/program.h"
#include "aot/tools/runner.h"
#include "compiler/base/text.h"
#include "compiler/import/import.h"

namespace kiln {
namespace {

// What each replica is given, of arrays with a row for each, and the rows that they return.
absl::StatusOr<RunResult> RunReplicas(const Module& module, const std::vector<Literal>& stacked,
                                      const CompileOptions& compile, const RunOptions& run) {
  const int64_t replicas = module.replica_count, partitions = module.partition_count;
  std::vector<DeviceProgram> programs;
  for (int64_t r = 0; r < replicas; ++r) {
    std::vector<Literal> rows;
    for (const Literal& all : stacked) {
      Literal row(Shape::Array(all.shape().type(), Ints(all.shape().dims().begin() + 1, all.shape().dims().end())));
      for (int64_t k = 0; k < row.size(); ++k) row.Set(k, all.Get(r * row.size() + k));
      rows.push_back(std::move(row));
    }
    programs.insert(programs.end(), static_cast<size_t>(partitions), DeviceProgram{&module, rows});
  }
  RunResult out;
  ASSIGN_OR_RETURN(const auto results, RunDevices(programs, replicas, partitions, {}, compile, run, &out));
  for (size_t k = 0; k < results[0].size(); ++k) {
    if (!results[0][k].shape().IsArray()) continue;
    Literal all(Stacked(results[0][k].shape(), replicas));
    for (int64_t r = 0; r < replicas; ++r) {
      const Literal& row = results[static_cast<size_t>(r * partitions)][k];
      for (int64_t e = 0; e < row.size(); ++e) all.Set(r * row.size() + e, row.Get(e));
    }
    out.results.push_back(std::move(all));
  }
  return out;
}

// The evaluator knows dynamic dimensions; the arrays given and returned are those of the compiled program.
absl::StatusOr<RunResult> RunReference(const Module& module, const std::vector<Literal>& inputs,
                                       const CompileOptions& compile, const RunOptions& run) {
  ASSIGN_OR_RETURN(Values values, WithoutSizes(inputs, ArgumentLeaves(module)));
  ASSIGN_OR_RETURN(const std::vector<Values> results, RunProgram(module, {std::move(values)}, compile, run));
  RunResult out;
  out.results = WithSizes(results[0], ResultLeaves(module));
  return out;
}

absl::Status Run(const Arguments& args) {
  // Rows for replicas do not have the extents of the program's arguments.
  ASSIGN_OR_RETURN(ImportOptions import,
                   SettleFromInputs(args.Has("devices") ? std::vector<std::string>() : args.All("input")));
  CompileOptions compile;
  if (args.Has("config")) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(args.Get("config")));
    ASSIGN_OR_RETURN(compile, ParseConfig(text, args.Get("config")));
    compile.model.weight_constant_bytes = 0;  // inputs are the program's own arguments
  }
  RETURN_IF_ERROR(ReadImportOptions(args, compile, &import));
  ASSIGN_OR_RETURN(auto module, LoadModule(args.positional[0], import));
  const std::unique_ptr<Module> stated = module->Clone();
  RETURN_IF_ERROR(MakeStatic(module.get()));
  RETURN_IF_ERROR(SettleDevices(args, module.get()));
  compile.cpu.levels = {args.Get("target", "native")};
  RunOptions run;
  run.backend = args.Get("backend", "cpu");
  run.launcher = args.Get("launcher", "threads");
  int seed = 0;
  if (!absl::SimpleAtoi(args.Get("threads", "1"), &run.threads) || run.threads < 1)
    return InvalidArgument("error: --threads takes a number of at least 1");
  if (!absl::SimpleAtoi(args.Get("repeat", "1"), &run.repeat) || run.repeat < 1)
    return InvalidArgument("error: --repeat takes a number of at least 1");
  if (!absl::SimpleAtoi(args.Get("seed", "0"), &seed)) return InvalidArgument("error: --seed takes a number");
  const std::vector<std::string> files = args.All("input");
  const bool rows = args.Has("devices") && module->replica_count > 1 && !files.empty();
  std::vector<Literal> inputs;
  if (files.empty()) {
    inputs = SeededArguments(*module, static_cast<uint64_t>(seed));
  } else {
    ASSIGN_OR_RETURN(inputs, ReadInputs(files, *module, rows));
  }
  RunResult r;
  if (rows) {
    ASSIGN_OR_RETURN(r, RunReplicas(*module, inputs, compile, run));
  } else if (run.backend == "reference" && module->replica_count * module->partition_count == 1) {
    ASSIGN_OR_RETURN(r, RunReference(*stated, inputs, compile, run));
  } else {
    ASSIGN_OR_RETURN(r, RunModule(std::move(module), inputs, compile, run));
  }
  if (args.Has("out")) {
    for (size_t k = 0; k < r.results.size(); ++k)
      if (r.results[k].shape().IsArray())
        RETURN_IF_ERROR(WriteNpy(absl::StrCat(args.Get("out"), "/result_", k, ".npy"), r.results[k]));
  }
  if (args.Has("json")) {
    std::string results = "[";
    for (size_t k = 0; k < r.results.size(); ++k) {
      const Shape& s = r.results[k].shape();
      absl::StrAppend(&results, k ? "," : "", "{\"dtype\":", JsonQuote(TextOf(s.type())), ",\"shape\":[",
                      absl::StrJoin(s.dims(), ","), "]}");
    }
    std::printf(
        "{%s,\"compile_ms\":%.3f,\"threads\":%d,\"repeat\":%d,\"first_us\":%.3f,\"min_us\":%.3f,\"median_us\":%.3f,"
        "\"queued_us\":%.3f,\"exchange_us\":%.3f,\"exchange_late_us\":%.3f,\"exchange_alone_us\":%.3f,"
        "\"exchange_alone_late_us\":%.3f,\"exchange_overlap\":%.3f,\"results\":%s]}\n",
        StatsJson(r.model).c_str(), r.model.report.compile_ms, run.threads, run.repeat, r.first_us, r.min_us,
        r.median_us, r.queued_us, r.exchanges.early.us, r.exchanges.early.late_us, r.exchanges.alone.us,
        r.exchanges.alone.late_us, r.exchanges.overlap(), results.c_str());
  } else {
    for (size_t k = 0; k < r.results.size(); ++k) {
      const Literal& l = r.results[k];
      std::printf("result %zu %s%s\n", k, l.shape().ToString(false).c_str(),
                  l.shape().IsArray() && l.size() <= 64 ? (" " + l.ToString()).c_str() : "");
    }
    const std::string time = r.first_us > 0
                                 ? absl::StrFormat(", ran in %.1f us (first %.1f us)", r.median_us, r.first_us)
                                 : "";  // not timed
    std::printf("compiled in %.1f ms%s, arena %lld bytes\n", r.model.report.compile_ms, time.c_str(),
                static_cast<long long>(r.model.report.temp_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

int RunCommand(const Arguments& args) { return ExitCode(Run(args)); }

}  // namespace kiln
