#include "aot/tuning/cpu_tuner.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "aot/package/manifest.h"
#include "aot/planning.h"
#include "aot/tuning/tunables.h"
#include "codegen/cpu/convolution_plan.h"
#include "codegen/cpu/dot_plan.h"
#include "compiler/base/text.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/tuning.h"

namespace kiln {
namespace {

std::string TextOf(const cpu::Pieces& p) { return absl::StrCat(p.size, "x", p.count, "+", p.tail, ";"); }

std::string TextOf(const cpu::MatmulPlan& p) {
  std::string text = absl::StrCat(p.tile_rows, "x", p.tile_columns, p.direct ? "d" : "p", p.panel_rows, ";");
  for (const cpu::SumBlock& b : p.blocks) absl::StrAppend(&text, b.run, "*", b.pieces, ",");
  return text;
}

// What decides the code of `i`; empty where choices decide nothing.
std::string PlanText(const CpuLevel& level, const Instruction* i) {
  if (i->Is(Opcode::Dot)) {
    const auto plan = cpu::PlanDot(level, i);
    if (!plan.ok() || plan->algorithm != cpu::DotAlgorithm::kProducts) return "";
    const cpu::BlockedDotPlan& b = plan->blocked;
    if (b.product.tiles) return "";
    return absl::StrCat(TextOf(b.rows), TextOf(b.parts), TextOf(b.columns), TextOf(b.depth),
                        TextOf(cpu::PlanMatmul(level, b.product, b.rows.size, 1)));
  }
  const auto plan = cpu::PlanConvolution(level, i);
  if (!plan.ok()) return "";
  if (plan->algorithm == cpu::ConvolutionAlgorithm::kDirect) return "loops";
  if (plan->product.tiles) return "";
  const bool pointwise = plan->algorithm == cpu::ConvolutionAlgorithm::kPointwise;
  const int64_t rows = pointwise ? plan->pieces.size : plan->shape.out.back();
  const int64_t ranges = pointwise ? 1 : plan->pieces.size;
  return absl::StrCat(TextOf(plan->pieces), plan->column_parts, ";",
                      TextOf(cpu::PlanMatmul(level, plan->product, rows, ranges)));
}

// The choices whose plans differ, for `i` of a module of its own.
std::vector<int64_t> ChoicesFor(const CpuLevel& level, Instruction* i) {
  std::vector<int64_t> out;
  absl::flat_hash_set<std::string> seen;
  const auto count = static_cast<int64_t>(cpu::ProductChoices().size());
  for (int64_t number = 0; number < count; ++number) {
    SetAlgorithm(i, absl::StrCat(number));
    const std::string plan = PlanText(level, i);
    if (!plan.empty() && seen.insert(plan).second) out.push_back(number);
  }
  return out;
}

// `i` of parameters like its operands, as an entry.
std::unique_ptr<Module> Alone(const Instruction* i) {
  auto module = std::make_unique<Module>("subject");
  Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  std::vector<Instruction*> operands;
  for (const Instruction* o : i->operands()) {
    const auto number = static_cast<int64_t>(operands.size());
    operands.push_back(entry->AddParameter(number, o->shape(), absl::StrCat("p", number)));
  }
  entry->set_root(entry->AddClone(i, i->shape(), operands));
  return module;
}

// What this machine's processor calls itself.
std::string ProcessorName() {
  const auto text = ReadFile("/proc/cpuinfo");
  if (!text.ok()) return "unknown";
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> field = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(field.first) == "model name")
      return std::string(absl::StripAsciiWhitespace(field.second));
  }
  return "unknown";
}

CompileOptions WithChoice(const CompileOptions& options, const std::string& level, const std::string& key,
                          int64_t choice) {
  CompileOptions o = options;
  auto results = std::make_shared<TuningResults>();
  results->Add(level, key, {choice, 0, 1});
  o.gpu.tuning.results = std::move(results);
  return o;
}

}  // namespace

absl::StatusOr<CpuSubjects> FindCpuSubjects(std::unique_ptr<Module> module, const CompileOptions& o, bool again) {
  CpuSubjects out;
  ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel(o.cpu.levels.at(0)));
  Restrict(&level, o);
  out.level = level.name;
  const auto silent = [](const std::string&) {};
  ASSIGN_OR_RETURN(const PlannedProgram planned,
                   PlanProgram(std::move(module), "subject", o, ProgramTarget::kCpu, silent));
  out.panels = static_cast<int64_t>(CpuTunables(*planned.module, /*panels=*/true).size());
  absl::flat_hash_set<std::string> seen;
  for (const Instruction* i : CpuTunables(*planned.module)) {
    CpuSubject subject{TuningKey(i), TuningText(i), Alone(i), {}};
    if (!seen.insert(subject.key).second) continue;
    if (!again && o.gpu.tuning.results && o.gpu.tuning.results->Find(out.level, subject.key)) {
      ++out.known;
      continue;
    }
    Instruction* root = subject.module->entry()->root();
    subject.choices = ChoicesFor(level, root);
    root->mutable_attrs().backend_config.reset();
    // What is planned for it alone must be what the program has, or its times would say nothing.
    ASSIGN_OR_RETURN(const PlannedProgram alone,
                     PlanProgram(subject.module->Clone(), "subject", o, ProgramTarget::kCpu, silent));
    const std::vector<Instruction*> there = CpuTunables(*alone.module);
    if (there.size() == 1 && TuningKey(there[0]) == subject.key && subject.choices.size() > 1)
      out.list.push_back(std::move(subject));
  }
  return out;
}

absl::StatusOr<std::vector<CpuMeasurement>> MeasureChoices(const CpuSubject& subject, const std::string& level,
                                                           const CompileOptions& options, const MeasureCpu& measure) {
  constexpr int kRounds = 2;
  constexpr size_t kFastest = 4;  // that are measured again
  std::vector<CpuMeasurement> all;
  for (int64_t choice : subject.choices) all.push_back({choice, 0});
  const auto round = [&](size_t count) -> absl::Status {
    for (size_t k = 0; k < all.size(); ++k) {
      CpuMeasurement& m = all[k];
      if (k >= count && m.choice != 0) continue;
      ASSIGN_OR_RETURN(const double us, measure(*subject.module, WithChoice(options, level, subject.key, m.choice)));
      m.us = m.us > 0 ? std::min(m.us, us) : us;
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const CpuMeasurement& a, const CpuMeasurement& b) { return a.us < b.us; });
    return absl::OkStatus();
  };
  for (int k = 0; k < kRounds; ++k) RETURN_IF_ERROR(round(all.size()));
  for (int k = 0; k < kRounds; ++k) RETURN_IF_ERROR(round(kFastest));
  return all;
}

std::string EntryText(const CpuSubject& subject, const std::vector<CpuMeasurement>& measured) {
  std::string text =
      absl::StrCat("  entries {\n    key: \"", subject.key, "\"\n    hlo: \"", absl::CEscape(subject.text), "\"\n");
  for (const CpuMeasurement& m : measured)
    absl::StrAppendFormat(&text, "    candidates { algorithm: %d microseconds: %.3f }\n", m.choice, m.us);
  return text + "  }\n";
}

std::string ResultsText(const std::string& level, const std::vector<std::string>& entries) {
  return absl::StrCat("devices {\n  target: \"", level, "\"\n  name: \"", absl::CEscape(ProcessorName()),
                      "\"\n  versions: \"kiln ", kKilnVersion, "\"\n", absl::StrJoin(entries, ""), "}\n");
}

}  // namespace kiln
