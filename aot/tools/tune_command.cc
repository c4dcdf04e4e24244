// kiln tune MODULE: a program that measures the model's products and convolutions on a machine with the GPU.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "aot/tools/commands.h"
#include "aot/tuning/results.h"
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

absl::Status Run(const Arguments& args) {
  if (!args.Has("out")) return InvalidArgument("error: --out is needed");
  CompileOptions o;
  if (args.Has("config")) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(args.Get("config")));
    ASSIGN_OR_RETURN(o, ParseConfig(text, args.Get("config")));
  }
  if (args.Has("target")) o.gpu.targets = args.All("target");
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
