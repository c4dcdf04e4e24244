// mutate [--first N] [--count N] [--keep DIR] [--jobs N] PATH...: mutants of the valid inputs in files and folders,
// each in a process of its own. A mutant is accepted, or refused with one error that names file, line and column;
// anything else fails, is kept in DIR and makes the exit code 1. The mutant of a number is always the same.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/fuzz/mutate/check.h"
#include "tests/fuzz/mutate/child.h"
#include "tests/fuzz/mutate/mutations.h"

// The system's abseil and protobuf are not instrumented, so container annotations do not match; and freed memory shall
// not count as kiln's.
extern "C" const char* __asan_default_options() {
  return "detect_container_overflow=0:detect_leaks=0:quarantine_size_mb=16:hard_rss_limit_mb=3072:allocator_may_return_"
         "null=0";
}

namespace kiln::mutate {
namespace {

struct Counts {
  std::atomic<int64_t> accepted[kKinds], refused[kKinds], failed[kKinds];
};

struct Run {
  uint64_t first = 0, count = 20000;
  unsigned jobs = 1;
  std::string keep;
  std::vector<Input> inputs;
};

const char* Extension(const Input& mutant) {
  static const char* const kExtensions[] = {"hlo", "mlir", "mlirbc", "pb", "config", "tuning", "npy"};
  const bool denies = mutant.path.size() > 9 && mutant.path.substr(mutant.path.size() - 9) == ".denylist";
  return denies ? "denylist" : kExtensions[static_cast<int>(mutant.kind)];
}

void WriteTo(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// What is wrong with the answer: "a" accepted, "r" and the error's text, "i" and the text of an internal one.
std::string Problem(const Ended& ended, Kind kind, const std::string& path) {
  if (!ended.problem.empty()) return ended.problem;
  if (ended.said.empty()) return "no answer";
  const std::string text = ended.said.substr(1);
  if (ended.said[0] == 'i') return "internal: " + text;
  if (ended.said[0] == 'r' && text.empty()) return "an error without text";
  if (ended.said[0] == 'r' && !HasPlace(kind, text, path)) return "an error without a place: " + text;
  return "";
}

void CheckMutant(const Run& run, uint64_t number, const std::string& dir, Counts* counts) {
  const Input mutant = Mutant(run.inputs, number);
  const std::string file = absl::StrCat("m.", Extension(mutant)), path = absl::StrCat(dir, "/", file);
  WriteTo(path, mutant.bytes);
  const auto check = [&]() -> std::string {
    if (chdir(dir.c_str()) != 0) return "";
    const absl::Status s = Check(mutant.kind, file, number);
    return s.ok() ? "a" : absl::StrCat(absl::IsInternal(s) ? "i" : "r", s.message());
  };
  const Ended ended = RunInChild(check, {});
  const int kind = static_cast<int>(mutant.kind);
  const std::string problem = Problem(ended, mutant.kind, file);
  if (problem.empty()) {
    ++(ended.said[0] == 'a' ? counts->accepted : counts->refused)[kind];
    return;
  }
  ++counts->failed[kind];
  std::printf("mutant %llu of %s: %s\n", static_cast<unsigned long long>(number), mutant.path.c_str(), problem.c_str());
  std::fflush(stdout);
  if (run.keep.empty()) return;
  const std::string kept = absl::StrCat(run.keep, "/", number, ".", Extension(mutant));
  WriteTo(kept, mutant.bytes);
  WriteTo(kept + ".log", absl::StrCat("of ", mutant.path, "\n", problem, "\n", ended.log));
}

// Every jobs-th mutant, from the lane's number.
void Lane(const Run& run, unsigned lane, Counts* counts) {
  const char* tmp = std::getenv("TMPDIR");
  std::string dir = absl::StrCat(tmp ? tmp : "/tmp", "/mutate.XXXXXX");
  if (!mkdtemp(dir.data())) {
    std::perror(dir.c_str());
    _exit(1);
  }
  for (uint64_t k = lane; k < run.count; k += run.jobs) CheckMutant(run, run.first + k, dir, counts);
  for (const char* e : {"hlo", "mlir", "mlirbc", "pb", "config", "tuning", "denylist", "npy"})
    unlink(absl::StrCat(dir, "/m.", e).c_str());
  rmdir(dir.c_str());
  _exit(0);
}

int RunAll(const Run& run) {
  auto* counts =
      static_cast<Counts*>(mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (counts == MAP_FAILED) return 1;
  for (unsigned lane = 0; lane < run.jobs; ++lane)
    if (fork() == 0) Lane(run, lane, counts);
  bool whole = true;
  for (int status; wait(&status) > 0;) whole = whole && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  int64_t accepted = 0, refused = 0, failed = 0;
  for (int k = 0; k < kKinds; ++k) {
    std::printf("%s: %lld accepted, %lld refused, %lld failed\n", Name(static_cast<Kind>(k)),
                static_cast<long long>(counts->accepted[k]), static_cast<long long>(counts->refused[k]),
                static_cast<long long>(counts->failed[k]));
    accepted += counts->accepted[k];
    refused += counts->refused[k];
    failed += counts->failed[k];
  }
  std::printf("%lld mutants of %zu inputs: %lld accepted, %lld refused, %lld failed\n",
              static_cast<long long>(accepted + refused + failed), run.inputs.size(), static_cast<long long>(accepted),
              static_cast<long long>(refused), static_cast<long long>(failed));
  return whole && failed == 0 && accepted > 0 && refused > 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  Run run;
  std::vector<std::string> paths;
  bool print = false;
  for (int k = 1; k < argc; ++k) {
    const std::string arg = argv[k];
    if (arg == "--print") {
      print = true;
    } else if (arg.rfind("--", 0) != 0) {
      paths.push_back(arg);
    } else if (++k == argc) {
      paths.clear();
      break;
    } else if (arg == "--first") {
      run.first = std::strtoull(argv[k], nullptr, 10);
    } else if (arg == "--count") {
      run.count = std::strtoull(argv[k], nullptr, 10);
    } else if (arg == "--jobs") {
      run.jobs = static_cast<unsigned>(std::max(1, std::atoi(argv[k])));
    } else if (arg == "--keep") {
      run.keep = argv[k];
    }
  }
  run.inputs = ReadInputs(paths);
  if (run.inputs.empty()) {
    std::fprintf(stderr, "usage: mutate [--first N] [--count N] [--jobs N] [--keep DIR] [--print] PATH...\n");
    return 2;
  }
  if (print) {
    const Input mutant = Mutant(run.inputs, run.first);
    std::fwrite(mutant.bytes.data(), 1, mutant.bytes.size(), stdout);
    return 0;
  }
  if (!run.keep.empty()) mkdir(run.keep.c_str(), 0777);
  return RunAll(run);
}

}  // namespace
}  // namespace kiln::mutate

int main(int argc, char** argv) { return kiln::mutate::Main(argc, argv); }
