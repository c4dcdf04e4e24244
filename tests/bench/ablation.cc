// Leaves out each pass of the CPU and the GPU pipeline in turn and tabulates what that changes on a set of programs.
//
// usage: ablation OUT.md GOLDEN_DIR [--missing] MODULE...
// --missing: passes that have a row in OUT.md keep it.
// Instructions, kernels and arena are those of the planned program. Times on CPUs are those of one thread, the least of
// several runs, and of the whole compile for one CPU level, with and without the pass in turn; times on GPUs are those
// that `kiln explain` estimates. Times are taken and results compared (in the emulator, of GPUs) on at most kCompared
// of the programs that a pass changes. Ratios are without / with the pass, as geometric means over what changed. Exit
// code 1: a program gives other results without a pass, rather than not compiling, or nothing shows what a pass does.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "aot/planning.h"
#include "aot/report/explanation.h"
#include "aot/tools/runner.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/import/import.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

constexpr size_t kCompared = 6;
constexpr double kSlow = 2;  // seconds of a compile and its runs above which a program is not run

struct Program {
  std::string path, name;
  std::unique_ptr<Module> module;
  std::string text;                // optimised and planned
  std::set<std::string> changing;  // passes that changed it
  int64_t instructions = 0, kernels = 0, temp = 0;
  bool runs = false;             // fast enough
  std::vector<Literal> results;  // if so
};

// A target and what is asked of it.
struct Subject {
  ProgramTarget target;
  const char* title;
  CompileOptions options;
  RunOptions run;
};

Subject Cpu() {
  Subject s{ProgramTarget::kCpu, "CPU", {}, {}};
  s.options.cpu.levels = {"native"};
  s.options.cpu.threads = 1;
  s.run.repeat = 9;
  return s;
}

Subject Gpu() {
  Subject s{ProgramTarget::kGpu, "GPU (sm_90)", {}, {}};
  s.options.cpu.levels.clear();
  s.options.gpu.targets = {"sm_90"};
  s.run.backend = "gpu-emulated";
  return s;
}

int64_t CountKernels(const ThunkSequence& thunks) {
  int64_t n = 0;
  for (const Thunk& t : thunks) {
    n += t.kind == ThunkKind::Kernel;
    for (const ThunkSequence& s : t.nested) n += CountKernels(s);
  }
  return n;
}

CompileOptions Without(const Subject& s, const std::string& pass) {
  CompileOptions o = s.options;
  if (!pass.empty()) o.pipeline.disabled = {pass};
  return o;
}

// The planned text and the figures of the plan, without `pass` (or with all).
absl::Status Measure(const Subject& s, const Module& module, const std::string& pass, Program* p) {
  ASSIGN_OR_RETURN(const PlannedProgram planned,
                   PlanProgram(module.Clone(), "m", Without(s, pass), s.target, [](const std::string&) {}));
  p->text = ToText(*planned.module);
  for (const PassRecord& r : planned.passes)
    if (r.changed) p->changing.insert(r.pass);
  p->instructions = planned.module->instruction_count();
  p->kernels = CountKernels(planned.thunks);
  p->temp = planned.plan.buffers.temp_bytes();
  return absl::OkStatus();
}

struct Times {
  double run_us, compile_ms;
  std::vector<Literal> results;
};

// The same numbers, but for what another order of sums and roundings does to floats.
bool Agree(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  for (size_t r = 0; r < a.size(); ++r) {
    if (!IsFloat(a[r].type()) && !IsComplex(a[r].type())) {
      if (!(a[r] == b[r])) return false;
      continue;
    }
    double largest = 0;
    for (int64_t k = 0; k < a[r].size(); ++k)
      if (const Element e = a[r].Get(k); std::isfinite(e.re) && std::isfinite(e.im))
        largest = std::max({largest, std::fabs(e.re), std::fabs(e.im)});
    const double close = largest * std::max(1e-3, std::ldexp(16, -InfoOf(ComponentType(a[r].type())).mantissa_bits));
    const auto same = [&](double x, double y) {
      return x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= close;
    };
    for (int64_t k = 0; k < a[r].size(); ++k) {
      const Element x = a[r].Get(k), y = b[r].Get(k);
      if (!same(x.re, y.re) || !same(x.im, y.im)) return false;
    }
  }
  return true;
}

// Floats of at most an eighth: recurrences with weights of any size amplify roundings without end.
std::vector<Literal> SmallArguments(const Module& m) {
  std::vector<Literal> out = SeededArguments(m, 1);
  for (Literal& l : out)
    for (int64_t k = 0; (IsFloat(l.type()) || IsComplex(l.type())) && k < l.size(); ++k) {
      Element e = l.Get(k);
      e.re /= 8;
      e.im /= 8;
      l.Set(k, e);
    }
  return out;
}

absl::StatusOr<double> Estimate(const Program& p, const CompileOptions& options) {
  ASSIGN_OR_RETURN(const Explanation e, Explain(p.module->Clone(), options));
  double us = 0;
  for (const Explanation::Kernel& k : e.kernels) us += k.estimated_us;
  return us;
}

absl::StatusOr<Times> Time(const Subject& s, const Program& p, const std::string& pass) {
  const CompileOptions options = Without(s, pass);
  ASSIGN_OR_RETURN(RunResult r, RunModule(p.module->Clone(), SmallArguments(*p.module), options, s.run));
  Times t{r.min_us, r.model.report.compile_ms, std::move(r.results)};
  if (s.target == ProgramTarget::kGpu) {
    ASSIGN_OR_RETURN(t.run_us, Estimate(p, options));
  }
  return t;
}

// The first line of an error, with the program's name for its path.
std::string Reason(const absl::Status& s, const Program& p) {
  std::string text(absl::StripPrefix(std::string(s.message()), "error: "));
  return absl::StrReplaceAll(text.substr(0, text.find('\n')), {{p.path, p.name}, {"|", "/"}});
}

class Ratio {
 public:
  void Add(double without, double with) {
    sum_ += std::log(std::max(without, 1.0) / std::max(with, 1.0));
    ++n_;
  }
  std::string ToText() const { return n_ ? absl::StrFormat("%.3f", std::exp(sum_ / n_)) : "-"; }

 private:
  double sum_ = 0;
  int n_ = 0;
};

// Those of the files that one device runs and that compile.
std::vector<Program> LoadPrograms(const Subject& s, char** begin, char** end) {
  std::vector<Program> programs;
  for (char** path = begin; path != end; ++path) {
    Program p;
    p.path = *path;
    const std::vector<std::string> parts = absl::StrSplit(*path, '/');
    p.name = parts.size() > 1 ? parts[parts.size() - 2] : parts.back();
    auto m = LoadModule(*path);
    if (!m.ok()) continue;  // sizes left open, or a form for another tool
    p.module = std::move(*m);
    if (p.module->replica_count * p.module->partition_count > 1 || !MakeStatic(p.module.get()).ok()) continue;
    if (!Measure(s, *p.module, "", &p).ok()) continue;
    programs.push_back(std::move(p));
  }
  return programs;
}

// The rows of a page by title and pass.
using Rows = std::map<std::pair<std::string, std::string>, std::string>;

Rows RowsOf(const std::string& page) {
  Rows rows;
  std::string title;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::ConsumePrefix(&line, "## ")) title = std::string(line.substr(0, line.rfind(',')));
    const size_t end = line.find("` |");
    if (absl::StartsWith(line, "| `") && end != absl::string_view::npos)
      rows[{title, std::string(line.substr(3, end - 3))}] = absl::StrCat(line, "\n");
  }
  return rows;
}

// The passes that need a row.
std::vector<std::string> Wanted(const Subject& s, const Rows& kept) {
  std::vector<std::string> out = (s.target == ProgramTarget::kGpu ? GpuPipeline() : CpuPipeline()).Passes();
  out.erase(std::remove_if(out.begin(), out.end(),
                           [&](const auto& pass) {
                             return kept.count({s.title, pass}) > 0;
                           }),
            out.end());
  return out;
}

// Runs each that a wanted pass changes, in this process' children, once: those that are fast enough will be run again.
void RunPrograms(const Subject& s, const std::vector<std::string>& wanted, std::vector<Program>* programs) {
  for (Program& p : *programs) {
    if (std::none_of(wanted.begin(), wanted.end(), [&](const auto& pass) { return p.changing.count(pass) > 0; }))
      continue;
    const auto start = std::chrono::steady_clock::now();
    auto times = Time(s, p, "");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::fprintf(stderr, "%s: %.1f s\n", p.name.c_str(), seconds);
    p.runs = times.ok() && seconds < kSlow;
    if (p.runs) p.results = std::move(times->results);
  }
}

// What leaving one pass out comes to.
struct Effect {
  Ratio instructions, kernels, temp, run, compile;
  std::vector<const Program*> changed;
  int failed = 0;
  std::string failure;  // the last one's reason
  std::string most;     // the program whose run time moves most
  std::string wrong;    // a program that gives other results
};

void MeasurePlans(const Subject& s, const std::vector<Program>& programs, const std::string& pass, Effect* effect) {
  for (const Program& p : programs) {
    if (!p.changing.count(pass)) continue;
    Program without;
    if (absl::Status status = Measure(s, *p.module, pass, &without); !status.ok()) {
      ++effect->failed;
      effect->failure = Reason(status, p);
      continue;
    }
    if (without.text == p.text) continue;
    effect->changed.push_back(&p);
    effect->instructions.Add(static_cast<double>(without.instructions), static_cast<double>(p.instructions));
    effect->kernels.Add(static_cast<double>(without.kernels), static_cast<double>(p.kernels));
    effect->temp.Add(static_cast<double>(without.temp), static_cast<double>(p.temp));
  }
}

// Times and results of kCompared programs at most, evenly over those that changed.
void RunChanged(const Subject& s, const std::string& pass, Effect* effect) {
  std::vector<const Program*> chosen;
  for (const Program* p : effect->changed)
    if (p->runs) chosen.push_back(p);
  const size_t step = std::max<size_t>(1, (chosen.size() + kCompared - 1) / kCompared);
  double farthest = 0;
  for (size_t k = 0; k < chosen.size(); k += step) {
    const Program& p = *chosen[k];
    auto with = Time(s, p, ""), without = Time(s, p, pass);
    if (!with.ok() || !without.ok()) {
      ++effect->failed;
      effect->failure = Reason(without.ok() ? with.status() : without.status(), p);
      continue;
    }
    if (!Agree(p.results, without->results)) effect->wrong = p.name;
    effect->run.Add(without->run_us * 1000, with->run_us * 1000);
    effect->compile.Add(without->compile_ms * 1000, with->compile_ms * 1000);
    const double factor = std::fabs(std::log(without->run_us / with->run_us));
    if (factor > farthest) {
      farthest = factor;
      effect->most = absl::StrFormat("%s %.2f", p.name, without->run_us / with->run_us);
    }
  }
}

std::string Row(const std::string& pass, const Effect& e) {
  std::string note = e.most;
  if (e.failed)
    note =
        absl::StrCat(e.failed, e.failed > 1 ? " programs do" : " program does", " not compile without it: ", e.failure);
  if (e.changed.empty() && !e.failed)
    note = absl::StrCat("no program here meets it; [its own](../tests/passes/golden/", pass, ".hlo)");
  if (!e.wrong.empty()) note = absl::StrCat("**other results** of ", e.wrong);
  return absl::StrFormat("| `%s` | %d | %s | %s | %s | %s | %s | %s |\n", pass, e.changed.size(),
                         e.instructions.ToText(), e.kernels.ToText(), e.temp.ToText(), e.run.ToText(),
                         e.compile.ToText(), note);
}

// `faults` counts rows that say something is wrong.
std::string Table(const Subject& s, const std::vector<Program>& programs, const std::string& golden, const Rows& kept,
                  int* faults) {
  std::string table = absl::StrFormat(
      "\n## %s, %d programs\n\n| pass | programs changed | instructions | kernels | arena | %s | compile time | |\n"
      "|---|---|---|---|---|---|---|---|\n",
      s.title, programs.size(), s.target == ProgramTarget::kGpu ? "estimated time" : "run time");
  for (const std::string& pass : (s.target == ProgramTarget::kGpu ? GpuPipeline() : CpuPipeline()).Passes()) {
    if (const auto row = kept.find({s.title, pass}); row != kept.end()) {
      table += row->second;
      continue;
    }
    Effect effect;
    MeasurePlans(s, programs, pass, &effect);
    RunChanged(s, pass, &effect);
    table += Row(pass, effect);
    std::fprintf(stderr, "%s: %zu changed\n", pass.c_str(), effect.changed.size());
    *faults += !effect.wrong.empty();
    if (effect.changed.empty() && !effect.failed && !std::ifstream(absl::StrCat(golden, "/", pass, ".hlo"))) {
      std::fprintf(stderr, "error: nothing shows what %s does\n", pass.c_str());
      ++*faults;
    }
  }
  return table;
}

constexpr char kPage[] =
    "# What each pass is worth\n\n"
    "Written by `./dev ablation`: every pass of both pipelines is left out in turn. A number is the figure without "
    "the\n"
    "pass over the figure with it, as a geometric mean over the programs that change: above 1 the pass helps.\n"
    "Instructions, kernels and arena are those of the planned program. Times are of at most %d of those programs, "
    "which\n"
    "also have to give the same results without the pass. On CPU they are of one thread on one core, and carry a few\n"
    "percent of noise; on GPU they are what `kiln explain` estimates, and results are those of the emulator. The last\n"
    "column has the program whose time moves most, or why a program cannot do without the pass. A pass that no "
    "program\n"
    "here meets has one of its own, where the golden test shows that it fires.\n";

int Main(int argc, char** argv) {
  const bool missing = argc > 3 && absl::string_view(argv[3]) == "--missing";
  char** modules = argv + 3 + missing;
  if (modules >= argv + argc) {
    std::fprintf(stderr, "usage: ablation OUT.md GOLDEN_DIR [--missing] MODULE...\n");
    return 2;
  }
  Rows kept;
  if (missing) {
    const absl::StatusOr<std::string> page = ReadFile(argv[1]);
    if (page.ok()) kept = RowsOf(*page);
  }
  // One core for this process and for those that it starts.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof one, &one);
  std::string page = absl::StrFormat(kPage, kCompared);
  int faults = 0;
  for (const Subject& s : {Cpu(), Gpu()}) {
    std::vector<Program> programs = LoadPrograms(s, modules, argv + argc);
    RunPrograms(s, Wanted(s, kept), &programs);
    page += Table(s, programs, argv[2], kept, &faults);
  }
  if (absl::Status s = WriteFile(argv[1], page); !s.ok()) {
    std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
    return 1;
  }
  return faults > 0;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
