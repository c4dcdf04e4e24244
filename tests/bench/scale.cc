// What verifying and compiling very large programs takes: time and peak memory of the kiln tool, a process for each.
//
// usage: scale KILN OUT.md [--xla "PYTHON COMPILE.PY"] [NAME...]
// Each program is written as HLO text, then read by `kiln verify` and `kiln compile` for one CPU level. A program at a
// tenth of the size is compiled beside it: a compile that is linear shows a ratio of about 10. With --xla, XLA:CPU
// compiles the same text (tests/oracle/compile.py), for at most a minute. The exit code is 1 if a program fails or
// takes more memory than its row allows.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kiln {
namespace {

// A dependent chain of elementwise operations.
std::string Chain(int64_t n) {
  std::string t = "HloModule chain\nENTRY e {\n x0 = f32[16] parameter(0)\n y = f32[16] parameter(1)\n";
  for (int64_t k = 1; k < n; ++k)
    absl::StrAppend(&t, " x", k, " = f32[16] ", k % 2 ? "add" : "multiply", "(x", k - 1, ", y)\n");
  return t + "}\n";
}

// A dependent chain of kernels.
std::string Products(int64_t n) {
  std::string t = "HloModule products\nENTRY e {\n x0 = f32[16,16] parameter(0)\n y = f32[16,16] parameter(1)\n";
  for (int64_t k = 1; k < n; ++k)
    absl::StrAppend(&t, " x", k, " = f32[16,16] dot(x", k - 1,
                    ", y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  return t + "}\n";
}

// About n instructions that need one value, summed by a tree.
std::string Wide(int64_t n) {
  std::string t = "HloModule wide\nENTRY e {\n x = f32[16] parameter(0)\n";
  std::vector<std::string> level;
  for (int64_t k = 0; k < n / 5; ++k) {
    absl::StrAppend(&t, " n", k, " = f32[] constant(", k, ")\n b", k, " = f32[16] broadcast(n", k,
                    "), dimensions={}\n m", k, " = f32[16] multiply(x, b", k, ")\n s", k, " = f32[16] sine(m", k,
                    ")\n");
    level.push_back(absl::StrCat("s", k));
  }
  for (int64_t sums = 0; level.size() > 1;) {
    std::vector<std::string> next;
    for (size_t k = 0; k + 1 < level.size(); k += 2) {
      next.push_back(absl::StrCat("t", sums++));
      absl::StrAppend(&t, " ", next.back(), " = f32[16] add(", level[k], ", ", level[k + 1], ")\n");
    }
    if (level.size() % 2) next.push_back(level.back());
    level = std::move(next);
  }
  return absl::StrCat(t, " ROOT r = f32[16] negate(", level[0], ")\n}\n");
}

std::string Concatenate(int64_t n) {
  std::string t = "HloModule concatenate\nENTRY e {\n", operands;
  for (int64_t k = 0; k < n; ++k) {
    absl::StrAppend(&t, " p", k, " = f32[4,8] parameter(", k, ")\n");
    absl::StrAppend(&operands, k ? ", p" : "p", k);
  }
  return absl::StrCat(t, " ROOT r = f32[", 4 * n, ",8] concatenate(", operands, "), dimensions={0}\n}\n");
}

// Loops, each in the body of the next.
std::string Loops(int64_t n) {
  std::string t = "HloModule loops\n";
  const std::string run = " t0 = (s32[], f32[4]) tuple(z, x)\n w = (s32[], f32[4]) while(t0), condition=again";
  for (int64_t k = 0; k < n; ++k) {
    absl::StrAppend(&t, "again", k, " {\n s = (s32[], f32[4]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n",
                    " l = s32[] constant(2)\n ROOT lt = pred[] compare(i, l), direction=LT\n}\n");
    absl::StrAppend(&t, "b", k, " {\n s = (s32[], f32[4]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n",
                    " x = f32[4] get-tuple-element(s), index=1\n one = s32[] constant(1)\n",
                    " j = s32[] add(i, one)\n");
    if (k == 0)
      t += " y = f32[4] add(x, x)\n";
    else
      absl::StrAppend(&t, " z = s32[] constant(0)\n", run, k - 1, ", body=b", k - 1,
                      "\n y = f32[4] get-tuple-element(w), index=1\n");
    t += " ROOT t = (s32[], f32[4]) tuple(j, y)\n}\n";
  }
  return absl::StrCat(t, "ENTRY e {\n x = f32[4] parameter(0)\n z = s32[] constant(0)\n", run, n - 1, ", body=b", n - 1,
                      "\n ROOT y = f32[4] get-tuple-element(w), index=1\n}\n");
}

std::string Results(int64_t n) {
  std::string t = "HloModule results\nENTRY e {\n x = f32[4] parameter(0)\n", shapes, values;
  for (int64_t k = 0; k < n; ++k) {
    absl::StrAppend(&t, " n", k, " = f32[] constant(", k, ")\n b", k, " = f32[4] broadcast(n", k,
                    "), dimensions={}\n r", k, " = f32[4] add(x, b", k, ")\n");
    absl::StrAppend(&shapes, k ? ", " : "", "f32[4]");
    absl::StrAppend(&values, k ? ", r" : "r", k);
  }
  return absl::StrCat(t, " ROOT t = (", shapes, ") tuple(", values, ")\n}\n");
}

// Updates of one array in place, one after the other.
std::string Updates(int64_t n) {
  std::string t = "HloModule updates\nENTRY e {\n x0 = f32[1024] parameter(0)\n u = f32[1] parameter(1)\n";
  for (int64_t k = 1; k < n; ++k)
    absl::StrAppend(&t, " i", k, " = s32[] constant(", k % 1024, ")\n x", k, " = f32[1024] dynamic-update-slice(x",
                    k - 1, ", u, i", k, ")\n");
  return t + "}\n";
}

// Layers whose weights are constants, 64 MB each, `mb` in all.
std::string Constants(int64_t mb) {
  constexpr int64_t kElements = 4096 * 4096;
  std::string t = "HloModule constants\nENTRY e {\n x0 = f32[8,4096] parameter(0)\n";
  const int64_t layers = mb * 1048576 / (4 * kElements);
  t.reserve(layers * 2 * kElements + 65536);
  uint32_t state = 1;
  for (int64_t k = 0; k < layers; ++k) {
    absl::StrAppend(&t, " c", k, " = f32[", kElements, "] constant({");
    for (int64_t i = 0; i < kElements; ++i) {
      state = state * 1664525u + 1013904223u;
      t += static_cast<char>('0' + (state >> 24) % 10);
      t += i + 1 < kElements ? ',' : '}';
    }
    absl::StrAppend(&t, ")\n w", k, " = f32[4096,4096] reshape(c", k, ")\n x", k + 1, " = f32[8,4096] dot(x", k, ", w",
                    k, "), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  }
  return t + "}\n";
}

struct Program {
  const char* name;
  std::function<std::string(int64_t)> text;
  int64_t size;
  int64_t most_mb;  // that the compile may take
};

const std::vector<Program>& Programs() {
  static const auto* programs = new std::vector<Program>{
      {"chain", Chain, 1000000, 6000},         {"products", Products, 10000, 2000},   {"wide", Wide, 100000, 3000},
      {"concatenate", Concatenate, 1000, 500}, {"loops", Loops, 1000, 1000},          {"results", Results, 20000, 2000},
      {"updates", Updates, 10000, 1000},       {"constants", Constants, 2048, 10000},
  };
  return *programs;
}

struct Cost {
  double seconds = 0;
  int64_t mb = 0;  // peak resident set
  int exit_code = 0;
};

Cost Run(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t pid = fork();
  if (pid == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), usage.ru_maxrss / 1024,
          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

// "SECONDS | MB" of XLA:CPU, or why there are none.
std::string XlaCost(const std::string& xla, const std::string& file) {
  FILE* p = popen(absl::StrCat("timeout 60 ", xla, " ", file, " 2>/dev/null").c_str(), "r");
  double seconds = 0;
  long mb = 0;
  const bool read = p && std::fscanf(p, "%lf %ld", &seconds, &mb) == 2;
  const int status = p ? pclose(p) : -1;
  if (read && status == 0) return absl::StrFormat("%.1f | %d", seconds, mb);
  return WIFEXITED(status) && WEXITSTATUS(status) == 124 ? "over 60 |" : "fails |";
}

int Main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::string xla;
  if (const auto at = std::find(arguments.begin(), arguments.end(), "--xla"); arguments.end() - at >= 2) {
    xla = at[1];
    arguments.erase(at, at + 2);
  }
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: scale KILN OUT.md [--xla \"PYTHON COMPILE.PY\"] [NAME...]\n");
    return 2;
  }
  const std::string kiln = arguments[0];
  const std::vector<std::string> wanted(arguments.begin() + 2, arguments.end());
  std::string directory = "/tmp/kiln_scale_XXXXXX";
  if (!mkdtemp(directory.data())) return 1;
  const std::string file = directory + "/program.hlo", config = directory + "/config";
  std::ofstream(config) << "cpu_levels: \"v3\"\n";
  std::ofstream table(arguments[1]);
  table << "# Very large programs\n\n"
           "Made by `./dev scale`: seconds and peak memory of `kiln verify` and of `kiln compile` for one CPU level, "
           "and the compile's time over that of a program a tenth as large"
        << (xla.empty() ? "" : "; beside them XLA:CPU's compile of the same text, where it has one") << ".\n\n"
        << "| program | size | verify s | MB | compile s | MB | of a tenth |" << (xla.empty() ? "" : " XLA s | MB |")
        << "\n|---|---|---|---|---|---|---|" << (xla.empty() ? "" : "---|---|") << "\n";
  bool failed = false;
  for (const Program& p : Programs()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), p.name) == wanted.end()) continue;
    const std::vector<std::string> compile = {kiln,    "compile", file,       "--name", "m",
                                              "--out", directory, "--config", config};
    std::ofstream(file) << p.text(p.size / 10);
    const Cost tenth = Run(compile);
    std::ofstream(file) << p.text(p.size);
    const Cost verify = Run({kiln, "verify", file}), all = Run(compile);
    failed = failed || verify.exit_code || all.exit_code || tenth.exit_code || all.mb > p.most_mb;
    std::string row = absl::StrFormat("| %s | %d | %.1f | %d | %.1f | %d | %.1f |", p.name, p.size, verify.seconds,
                                      verify.mb, all.seconds, all.mb, all.seconds / tenth.seconds);
    if (!xla.empty()) absl::StrAppend(&row, " ", XlaCost(xla, file), " |");
    if (verify.exit_code || all.exit_code || tenth.exit_code)
      absl::StrAppend(&row, " failed: exit codes ", verify.exit_code, ", ", all.exit_code, ", ", tenth.exit_code);
    if (all.mb > p.most_mb) absl::StrAppend(&row, " more than the ", p.most_mb, " MB that it may take");
    std::puts(row.c_str());
    std::fflush(stdout);
    table << row << "\n";
  }
  for (const char* name : {"program.hlo", "config", "libm.a", "m.h", "m_c.h", "m.manifest.json"})
    unlink(absl::StrCat(directory, "/", name).c_str());
  rmdir(directory.c_str());
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
