// kiln's half of `./dev oracle`: runs random modules or files on the CPU backend and the reference evaluator and leaves
// arguments and results where oracle.py finds them.
//
//   cases DIR seeds FIRST COUNT | cases DIR files FILE...
//
// DIR/K.json says for case K: its text, the arguments of each device, and for each backend the results or the error;
// arrays are slices of DIR/K.bin. A process for each case and backend, so that a crash or a hang is an answer too.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "tests/programs/header.h"
#include "tests/random/arguments.h"
#include "tests/random/generator.h"

namespace kiln {
namespace {

constexpr int kSecondsEach = 30;
constexpr rlim_t kMostMemory = rlim_t{8} << 30;
constexpr int64_t kMostElements = int64_t{1} << 22;
constexpr const char* kBackends[] = {"cpu", "reference"};

// Every second one of the wider kind.
RandomOptions Portable(int64_t seed) {
  RandomOptions o;
  o.portable = true;
  o.wide = seed % 2 != 0;
  return o;
}

struct Case {
  std::string name, text_file;
  int64_t seed = -1;  // of a random module; -1: a file
};

// Arrays appended to one file, and where each lies.
class Arrays {
 public:
  std::string Add(const std::vector<Values>& devices) {
    std::vector<std::string> rows;
    for (const Values& values : devices) {
      std::vector<std::string> row;
      for (const Literal& l : values) {
        row.push_back(absl::StrCat("{\"type\":", JsonQuote(TextOf(l.type())), ",\"dims\":[",
                                   absl::StrJoin(l.shape().dims(), ","), "],\"at\":", bytes_.size(),
                                   ",\"bytes\":", l.byte_size(), "}"));
        bytes_.append(reinterpret_cast<const char*>(l.data()), static_cast<size_t>(l.byte_size()));
      }
      rows.push_back(absl::StrCat("[", absl::StrJoin(row, ","), "]"));
    }
    return absl::StrCat("[", absl::StrJoin(rows, ","), "]");
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct Loaded {
  std::unique_ptr<Module> module;
  std::vector<Values> arguments;
};

absl::StatusOr<Loaded> Load(const Case& c) {
  Loaded out;
  if (c.seed >= 0) {
    out.module = RandomModule(static_cast<uint64_t>(c.seed), Portable(c.seed));
    RETURN_IF_ERROR(VerifyModule(*out.module));
  } else {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(c.text_file));
    ASSIGN_OR_RETURN(const Header header, ReadHeader(text));
    ASSIGN_OR_RETURN(out.module, LoadProgram(c.text_file, header));
    if (!header.inputs.empty()) out.arguments = InputsOf(header, *out.module);
  }
  int64_t elements = 0;
  for (const Shape& s : ArgumentLeaves(*out.module)) elements += s.ElementCount();
  for (const Shape& s : ResultLeaves(*out.module)) elements += s.ElementCount();
  if (elements > kMostElements) return ResourceExhausted("too large for a comparison: ", elements, " elements");
  if (out.arguments.empty())
    for (int64_t d = 0; d < out.module->replica_count * out.module->partition_count; ++d)
      out.arguments.push_back(c.seed >= 0 ? SmallValues(*out.module, static_cast<uint64_t>(c.seed), d)
                                          : SeededValues(*out.module, 0, d));
  return out;
}

absl::StatusOr<std::string> RunCase(const Case& c, const std::string& backend, Arrays* arrays) {
  ASSIGN_OR_RETURN(Loaded loaded, Load(c));
  CompileOptions compile;
  compile.cpu.levels = {"native"};
  compile.model.round_every_operation = true;  // as XLA does there: no excess precision
  RunOptions run;
  run.backend = backend;
  const std::string arguments = arrays->Add(loaded.arguments);
  const auto results = RunProgram(*loaded.module, loaded.arguments, compile, run);
  return absl::StrCat("{\"arguments\":", arguments, ",",
                      results.ok() ? absl::StrCat("\"results\":", arrays->Add(*results))
                                   : absl::StrCat("\"error\":", JsonQuote(results.status().message())),
                      "}");
}

void RunInChild(const Case& c, const std::string& backend, const std::string& stem) {
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kSecondsEach);
    const rlimit memory = {kMostMemory, kMostMemory};
    setrlimit(RLIMIT_AS, &memory);
    Arrays arrays;
    const auto r = RunCase(c, backend, &arrays);
    const std::string json = r.ok() ? *r : absl::StrCat("{\"refused\":", JsonQuote(r.status().message()), "}");
    const bool written = WriteFile(stem + ".bin", arrays.bytes()).ok() && WriteFile(stem + ".json", json).ok();
    _exit(written ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::string why =
      WIFSIGNALED(status) ? WTERMSIG(status) == SIGALRM ? "time limit" : strsignal(WTERMSIG(status)) : "exit";
  if (absl::Status s = WriteFile(stem + ".json", absl::StrCat("{\"died\":", JsonQuote(why), "}")); !s.ok())
    std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
}

int Main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: cases DIR seeds FIRST COUNT | cases DIR files FILE...\n");
    return 2;
  }
  const std::string dir = argv[1];
  std::vector<Case> cases;
  if (!std::strcmp(argv[2], "seeds") && argc == 5) {
    int64_t first = 0, count = 0;
    if (!absl::SimpleAtoi(argv[3], &first) || !absl::SimpleAtoi(argv[4], &count)) return 2;
    for (int64_t s = first; s < first + count; ++s) cases.push_back({absl::StrCat(s), "", s});
  } else {
    for (int k = 3; k < argc; ++k) cases.push_back({absl::StrCat(k - 3), argv[k], -1});
  }
  for (const Case& c : cases) {
    const std::string stem = dir + "/" + c.name;
    if (c.seed >= 0)
      if (absl::Status s =
              WriteFile(stem + ".hlo", ToText(*RandomModule(static_cast<uint64_t>(c.seed), Portable(c.seed))));
          !s.ok()) {
        std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
        return 1;
      }
    for (const char* backend : kBackends) RunInChild(c, backend, stem + "." + backend);
    std::printf("%s %s\n", c.name.c_str(), c.seed >= 0 ? (stem + ".hlo").c_str() : c.text_file.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
