// kiln tune MODULE: how a model's products and convolutions are best computed. For a GPU a program is made that
// measures on a machine with one; on this machine's CPU they are measured at once.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "aot/tools/commands.h"
#include "aot/tools/runner.h"
#include "aot/tuning/cpu_tuner.h"
#include "aot/tuning/results.h"
#include "aot/tuning/tunables.h"
#include "aot/tuning/tuner.h"
#include "compiler/base/text.h"
#include "compiler/import/import.h"

namespace kiln {
namespace {

// Links the archive, which has main(), with the C compiler of this machine.
absl::Status Link(const std::string& cc, const std::string& archive, const std::string& program) {
  const pid_t pid = fork();
  if (pid == 0) {
    execlp(cc.c_str(), cc.c_str(), "-o", program.c_str(), archive.c_str(), "-lm", "-lpthread", "-ldl",
           static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return InvalidArgument("error: '", cc, "' cannot link the program; its archive is ", archive,
                         " (CC=... names another compiler; or: cc ARCHIVE -lm -lpthread -ldl)");
}

// The least time of runs that together take some hundredths of a second.
absl::StatusOr<double> LeastTime(const Module& module, const CompileOptions& options, int threads) {
  constexpr double kEnoughUs = 3e4;
  constexpr int kFewest = 5, kMost = 2000;
  RunOptions run;
  run.threads = threads;
  run.repeat = 2;
  const std::vector<Literal> arguments = SeededArguments(module, 0);
  ASSIGN_OR_RETURN(const RunResult once, RunModule(module.Clone(), arguments, options, run));
  const double runs = kEnoughUs / std::max(once.min_us, 0.1);
  run.repeat = static_cast<int>(std::min<double>(kMost, std::max<double>(kFewest, runs)));
  ASSIGN_OR_RETURN(const RunResult many, RunModule(module.Clone(), arguments, options, run));
  return std::min(once.min_us, many.min_us);
}

// What is not measured, in parentheses; empty: nothing.
std::string LeftOut(const CpuSubjects& s) {
  std::vector<std::string> parts;
  if (s.known) parts.push_back(absl::StrCat(s.known, " have results"));
  if (s.panels) parts.push_back(absl::StrCat(s.panels, " have constant weights as panels"));
  return parts.empty() ? "" : absl::StrCat(" (", absl::StrJoin(parts, ", "), ")");
}

// The file holds new results only: those known are lost where it is theirs.
absl::Status CheckOut(const Arguments& args) {
  std::error_code none;
  for (const std::string& known : args.All("results"))
    if (std::filesystem::equivalent(known, args.Get("out"), none))
      return InvalidArgument("error: --out ", args.Get("out"), " would replace the results that --results names");
  return absl::OkStatus();
}

// Measures here and writes the results.
absl::Status TuneOnCpu(const Arguments& args, CompileOptions o, std::unique_ptr<Module> module) {
  const std::vector<std::string> targets = args.All("target");
  if (targets.size() != 1) return InvalidArgument("error: tuning is for one CPU level at a time");
  o.cpu.levels = {targets[0] == "cpu" ? "native" : targets[0]};
  o.gpu.targets.clear();
  int threads = 1;
  if (args.Has("threads") && (!absl::SimpleAtoi(args.Get("threads"), &threads) || threads < 1))
    return InvalidArgument("error: --threads is a number from 1 on");
  RETURN_IF_ERROR(CheckOut(args));
  RETURN_IF_ERROR(MakeStatic(module.get()));
  ASSIGN_OR_RETURN(const CpuSubjects subjects, FindCpuSubjects(std::move(module), o, args.Has("again")));
  const std::string left_out = LeftOut(subjects);
  const auto measure = [&](const Module& m, const CompileOptions& options) { return LeastTime(m, options, threads); };
  std::vector<std::string> entries;
  double logarithms = 0;
  for (const CpuSubject& s : subjects.list) {
    ASSIGN_OR_RETURN(const std::vector<CpuMeasurement> all, MeasureChoices(s, subjects.level, o, measure));
    double planned = 0;
    for (const CpuMeasurement& m : all)
      if (m.choice == 0) planned = m.us;
    logarithms += std::log(planned / all[0].us);
    std::fprintf(stderr, "%zu of %zu: %.1f us, choice %lld takes %.1f us: %s\n", entries.size() + 1,
                 subjects.list.size(), planned, static_cast<long long>(all[0].choice), all[0].us, s.text.c_str());
    entries.push_back(EntryText(s, all));
  }
  RETURN_IF_ERROR(WriteFile(args.Get("out"), ResultsText(subjects.level, entries)));
  if (entries.empty()) {
    std::printf("%s: no results: nothing to measure%s\n", args.Get("out").c_str(), left_out.c_str());
    return absl::OkStatus();
  }
  std::printf("%s: %zu products and convolutions%s for %s; as planned they take %.3f of the fastest choice's time\n",
              args.Get("out").c_str(), entries.size(), left_out.c_str(), subjects.level.c_str(),
              std::exp(logarithms / static_cast<double>(entries.size())));
  return absl::OkStatus();
}

absl::Status Run(const Arguments& args) {
  if (!args.Has("out")) return InvalidArgument("error: --out is needed");
  CompileOptions o;
  if (args.Has("config")) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(args.Get("config")));
    ASSIGN_OR_RETURN(o, ParseConfig(text, args.Get("config")));
  }
  const bool on_cpu = args.Has("target") && !IsGpuTarget(args.Get("target"));
  if (args.Has("target") && !on_cpu) o.gpu.targets = args.All("target");
  if (args.Has("level") && (!absl::SimpleAtoi(args.Get("level"), &o.gpu.tuning.level) || o.gpu.tuning.level > 4))
    return InvalidArgument("error: --level is 1 to 4");
  if (args.Has("results") || args.Has("denylist")) {
    ASSIGN_OR_RETURN(o.gpu.tuning.results,
                     LoadTuning(args.All("results"), args.Get("denylist"), o.gpu.tuning.results.get()));
  }
  o.model.name = args.Get("name", "model");
  ImportOptions import;
  RETURN_IF_ERROR(ReadImportOptions(args, o, &import));
  ASSIGN_OR_RETURN(auto module, LoadModule(args.positional[0], import));
  if (on_cpu) return TuneOnCpu(args, std::move(o), std::move(module));
  ASSIGN_OR_RETURN(const Tuner t, MakeTuner(std::move(module), o, args.Has("again")));
  for (const std::string& n : t.notes) std::fprintf(stderr, "note: %s\n", n.c_str());
  const std::string known = t.known ? absl::StrCat(" (", t.known, " have results)") : "";
  if (t.subjects == 0) {
    std::printf("nothing to measure%s\n", known.c_str());
    return absl::OkStatus();
  }
  const std::string program = args.Get("out"), archive = program + ".a";
  RETURN_IF_ERROR(WriteFile(archive, t.archive));
  const char* cc = std::getenv("CC");
  RETURN_IF_ERROR(Link(cc && *cc ? cc : "cc", archive, program));
  unlink(archive.c_str());
  std::printf(
      "%s: %lld products and convolutions%s, %lld candidates; run it on a machine with an %s, and give the file "
      "that it writes (%s.%s.tuning) to kiln compile --tuning\n",
      program.c_str(), static_cast<long long>(t.subjects), known.c_str(), static_cast<long long>(t.candidates),
      t.target.c_str(), t.name.c_str(), t.target.c_str());
  return absl::OkStatus();
}

}  // namespace

int TuneCommand(const Arguments& args) { return ExitCode(Run(args)); }

}  // namespace kiln
