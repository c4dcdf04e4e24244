// Disables each pass of the CPU pipeline in turn and tabulates what that changes on a set of programs.
//
// usage: ablation OUT.md GOLDEN_DIR MODULE...
// Instructions, kernels and arena are those of the planned program; times are those of one thread, the median of
// several runs, and of the whole compile for one CPU level. Times are taken on at most kTimed of the programs that a
// pass changes, with and without it in turn. Ratios are without / with the pass, as geometric means over what changed.
// A program that gives other results without a pass, rather than not compiling, is an error.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "aot/tools/runner.h"
#include "codegen/cpu/kernels.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/import/import.h"
#include "compiler/passes/memory/prepare_for_planning.h"
#include "compiler/pipeline/registry.h"
#include "compiler/plan/memory_plan.h"
#include "compiler/thunk/thunk.h"

namespace kiln {
namespace {

constexpr size_t kTimed = 8;
constexpr double kSlow = 4;  // seconds of compile and runs above which a program is not timed

struct Program {
  std::string path, name;
  std::unique_ptr<Module> module;
  std::string text;  // optimised
  int64_t instructions = 0, kernels = 0, temp = 0;
  double seconds = 0;  // that compiling and running took
};

int64_t CountKernels(const ThunkSequence& thunks) {
  int64_t n = 0;
  for (const Thunk& t : thunks) {
    n += t.kind == ThunkKind::Kernel;
    for (const ThunkSequence& s : t.nested) n += CountKernels(s);
  }
  return n;
}

PipelineOptions Without(const std::string& pass) {
  PipelineOptions o;
  if (!pass.empty()) o.disabled = {pass};
  return o;
}

// The optimised text and the figures of the plan, without `pass` (or with all).
absl::Status Measure(const Module& module, const std::string& pass, Program* p, const std::string& same_as = "") {
  std::unique_ptr<Module> m = module.Clone();
  RETURN_IF_ERROR(SettleDeviceCounts(m.get()));
  RETURN_IF_ERROR(CpuPipeline().Run(*m, Without(pass)));
  p->text = ToText(*m);
  if (p->text == same_as) return absl::OkStatus();
  RETURN_IF_ERROR(CheckFacts(*m, fact::Core | fact::LaidOut | fact::Fused));
  RETURN_IF_ERROR(PrepareForPlanning(*m));
  ASSIGN_OR_RETURN(MemoryPlan plan, PlanMemory(*m, cpu::ScratchBytes));
  ASSIGN_OR_RETURN(ThunkSequence thunks, BuildThunks(*m, plan.schedule, plan.buffers));
  p->instructions = m->instruction_count();
  p->kernels = CountKernels(thunks);
  p->temp = plan.buffers.temp_bytes();
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

absl::StatusOr<Times> Time(const Program& p, const std::string& pass) {
  CompileOptions compile;
  compile.cpu.levels = {"native"};
  compile.cpu.threads = 1;
  compile.pipeline = Without(pass);
  RunOptions run;
  run.repeat = 9;
  const std::vector<Literal> arguments = SeededArguments(*p.module, 1);
  Times best{1e30, 1e30, {}};
  for (int k = 0; k < 2; ++k) {
    ASSIGN_OR_RETURN(RunResult r, RunModule(p.module->Clone(), arguments, compile, run));
    best.run_us = std::min(best.run_us, r.min_us);
    best.compile_ms = std::min(best.compile_ms, r.model.report.compile_ms);
    best.results = std::move(r.results);
  }
  return best;
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
std::vector<Program> LoadPrograms(char** begin, char** end) {
  std::vector<Program> programs;
  for (char** path = begin; path != end; ++path) {
    Program p;
    p.path = *path;
    const std::vector<std::string> parts = absl::StrSplit(*path, '/');
    p.name = parts.size() > 1 ? parts[parts.size() - 2] : parts.back();
    auto m = LoadModule(*path);
    if (!m.ok()) continue;  // sizes left open, or a form for another tool
    p.module = std::move(*m);
    if (p.module->replica_count * p.module->partition_count > 1) continue;
    const auto start = std::chrono::steady_clock::now();
    if (!Measure(*p.module, "", &p).ok()) continue;
    if (!Time(p, "").ok()) continue;
    p.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::fprintf(stderr, "%s: %.1f s\n", p.name.c_str(), p.seconds);
    programs.push_back(std::move(p));
  }
  return programs;
}

// What leaving one pass out comes to.
struct Effect {
  Ratio instructions, kernels, temp, run, compile;
  std::vector<const Program*> changed;
  int failed = 0;
  std::string failure;  // the last one's reason
  std::string most;     // the program whose run time moves most
};

void MeasurePlans(const std::vector<Program>& programs, const std::string& pass, Effect* effect) {
  for (const Program& p : programs) {
    Program without;
    if (absl::Status s = Measure(*p.module, pass, &without, p.text); !s.ok()) {
      ++effect->failed;
      effect->failure = Reason(s, p);
      continue;
    }
    if (without.text == p.text) continue;
    effect->changed.push_back(&p);
    effect->instructions.Add(static_cast<double>(without.instructions), static_cast<double>(p.instructions));
    effect->kernels.Add(static_cast<double>(without.kernels), static_cast<double>(p.kernels));
    effect->temp.Add(static_cast<double>(without.temp), static_cast<double>(p.temp));
  }
}

// Times of kTimed programs at most, evenly over those that changed.
absl::Status MeasureTimes(const std::string& pass, Effect* effect) {
  std::vector<const Program*> timed;
  for (const Program* p : effect->changed)
    if (p->seconds < kSlow) timed.push_back(p);
  const size_t step = std::max<size_t>(1, (timed.size() + kTimed - 1) / kTimed);
  double farthest = 0;
  for (size_t k = 0; k < timed.size(); k += step) {
    auto with = Time(*timed[k], ""), without = Time(*timed[k], pass);
    if (!with.ok() || !without.ok()) {
      ++effect->failed;
      effect->failure = Reason(without.ok() ? with.status() : without.status(), *timed[k]);
      continue;
    }
    if (!Agree(with->results, without->results))
      return Internal("without ", pass, ", ", timed[k]->name, " gives other results");
    effect->run.Add(without->run_us * 1000, with->run_us * 1000);
    effect->compile.Add(without->compile_ms * 1000, with->compile_ms * 1000);
    const double factor = std::fabs(std::log(without->run_us / with->run_us));
    if (factor > farthest) {
      farthest = factor;
      effect->most = absl::StrFormat("%s %.2f", timed[k]->name, without->run_us / with->run_us);
    }
  }
  return absl::OkStatus();
}

std::string Row(const std::string& pass, const Effect& e) {
  std::string note = e.most;
  if (e.failed)
    note =
        absl::StrCat(e.failed, e.failed > 1 ? " programs do" : " program does", " not compile without it: ", e.failure);
  if (e.changed.empty() && !e.failed)
    note = absl::StrCat("no program here meets it; [its own](../tests/passes/golden/", pass, ".hlo)");
  return absl::StrFormat("| `%s` | %d | %s | %s | %s | %s | %s | %s |\n", pass, e.changed.size(),
                         e.instructions.ToText(), e.kernels.ToText(), e.temp.ToText(), e.run.ToText(),
                         e.compile.ToText(), note);
}

absl::StatusOr<std::string> Table(const std::vector<Program>& programs, const std::string& golden) {
  std::string table;
  for (const std::string& pass : CpuPipeline().Passes()) {
    Effect effect;
    MeasurePlans(programs, pass, &effect);
    RETURN_IF_ERROR(MeasureTimes(pass, &effect));
    table += Row(pass, effect);
    std::fprintf(stderr, "%s: %zu changed\n", pass.c_str(), effect.changed.size());
    if (effect.changed.empty() && !effect.failed && !std::ifstream(absl::StrCat(golden, "/", pass, ".hlo")))
      return Internal("nothing shows what ", pass, " does");
  }
  return table;
}

constexpr char kPage[] =
    "# What each pass is worth\n\n"
    "Written by `./dev ablation`: every pass of the CPU pipeline is left out in turn, on %d programs. A number is "
    "the\n"
    "figure without the pass over the figure with it, as a geometric mean over the programs that change: above 1 "
    "the\n"
    "pass helps. Instructions, kernels and arena are those of the planned program. Run and compile times are of one\n"
    "thread on one core, of at most %d of those programs; they carry a few percent of noise. The last column has "
    "the\n"
    "program whose run time moves most, or why a program cannot do without the pass. A pass that no program here\n"
    "meets has one of its own, where the golden test shows that it fires.\n\n"
    "| pass | programs changed | instructions | kernels | arena | run time | compile time | |\n"
    "|---|---|---|---|---|---|---|---|\n%s";

int Main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: ablation OUT.md GOLDEN_DIR MODULE...\n");
    return 2;
  }
  // One core for this process and for those that it starts.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof one, &one);
  const std::vector<Program> programs = LoadPrograms(argv + 3, argv + argc);
  const absl::StatusOr<std::string> table = Table(programs, argv[2]);
  if (!table.ok()) {
    std::fprintf(stderr, "error: %s\n", std::string(table.status().message()).c_str());
    return 1;
  }
  if (absl::Status s = WriteFile(argv[1], absl::StrFormat(kPage, programs.size(), kTimed, *table)); !s.ok()) {
    std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
