#include "compiler/pass/pipeline.h"

#include <algorithm>
#include <chrono>
#include <regex>

#include "absl/strings/str_format.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"

namespace kiln {
namespace {

constexpr int kMostRounds = 25;

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

struct Pipeline::Running {
  Module& module;
  const PipelineOptions& options;
  std::vector<PassRecord>* records;
  std::vector<std::vector<const PassInfo*>> passes;  // of each stage
  std::regex dumped;
  PassContext context;
  int counter = 0;
  bool stopped = false;
};

absl::Status Pipeline::RunPass(Running* r, const PassInfo* pass, const std::string& next, bool* changed) const {
  const PipelineOptions& o = r->options;
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(*changed, pass->run(r->module, r->context));
  for (const std::string& note : r->context.notes)
    if (o.on_note) o.on_note(note);
  r->context.notes.clear();
  if (r->records)
    r->records->push_back({pass->name, *changed,
                           std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(),
                           r->module.instruction_count(), std::move(r->context.rewrites)});
  r->context.rewrites.clear();
  ++r->counter;
  if (!*changed) return absl::OkStatus();
  if (o.verify_each)
    if (absl::Status v = VerifyModule(r->module); !v.ok())
      return Internal("after pass ", pass->name, ": ", v.message());
  if (o.on_change) o.on_change(pass->name, r->module);
  if (o.dump_dir.empty() || !std::regex_search(pass->name, r->dumped)) return absl::OkStatus();
  return WriteFile(absl::StrFormat("%s/%s.%04d.%s.after_%s.before_%s.txt", o.dump_dir, r->module.name(), r->counter,
                                   name_, pass->name, next),
                   ToText(r->module));
}

absl::Status Pipeline::RunStage(Running* r, size_t stage) const {
  const std::vector<const PassInfo*>& passes = r->passes[stage];
  const bool repeat = stages_[stage].repeat;
  const auto first = [&](size_t from) -> std::string {
    for (size_t s = from; s < r->passes.size(); ++s)
      if (!r->passes[s].empty()) return r->passes[s][0]->name;
    return "end";
  };
  for (int round = 1;; ++round) {
    bool any = false;
    for (size_t k = 0; k < passes.size(); ++k) {
      if (Holds(r->options.disabled, passes[k]->name)) continue;
      const std::string next = k + 1 < passes.size() ? passes[k + 1]->name : first(repeat ? stage : stage + 1);
      bool changed = true;
      for (int left = stages_[stage].steps[k].rounds; left > 0 && changed && !r->stopped; --left) {
        RETURN_IF_ERROR(RunPass(r, passes[k], next, &changed));
        any = any || changed;
        r->stopped = passes[k]->name == r->options.stop_after;
      }
      if (r->stopped) return absl::OkStatus();
    }
    if (!repeat || !any || round == stages_[stage].rounds) return absl::OkStatus();
    if (round < kMostRounds) continue;
    const std::string message = absl::StrCat("pipeline ", name_, ": stage ", stages_[stage].name,
                                             " still changes the module after ", kMostRounds, " rounds");
    if (r->options.verify_each) return Internal(message);
    if (r->options.on_note) r->options.on_note(message);
    return absl::OkStatus();
  }
}

absl::Status Pipeline::Run(Module& module, const PipelineOptions& o, std::vector<PassRecord>* records) const {
  Running r{module, o, records, {}, {}, {}};
  for (const Stage& s : stages_) {
    r.passes.emplace_back();
    for (const Step& step : s.steps) {
      const PassInfo* info = lookup_(step.pass);
      if (!info) return InvalidArgument("error: no pass is named '", step.pass, "' (kiln opt --list prints them)");
      r.passes.back().push_back(info);
    }
  }
  // The facts that hold after each pass follow from the table alone: an order that cannot work fails here.
  if (const auto facts = FactsBehind(o.initial_facts); !facts.ok())
    return Internal("pipeline ", name_, ": ", facts.status().message());
  for (const std::string& p : o.disabled)
    if (!lookup_(p)) return InvalidArgument("error: cannot disable '", p, "': no pass is named so");
  try {
    r.dumped = std::regex(o.dump_pass_re, std::regex::ECMAScript);
  } catch (const std::regex_error&) {
    return InvalidArgument("error: '", o.dump_pass_re, "' is not a regular expression");
  }
  r.context.fuel = o.fuel;
  r.context.tuning = o.tuning;
  r.context.f8_products = o.f8_products;
  r.context.algebra = o.algebra;
  r.context.combined = o.combined;
  r.context.folding_steps = o.folding_steps;
  for (size_t s = 0; s < stages_.size() && !r.stopped; ++s) RETURN_IF_ERROR(RunStage(&r, s));
  if (r.stopped) return absl::OkStatus();
  if (absl::Status v = VerifyModule(module); !v.ok()) return Internal("after pipeline ", name_, ": ", v.message());
  return absl::OkStatus();
}

absl::StatusOr<Facts> Pipeline::FactsBehind(Facts have) const {
  std::vector<const PassInfo*> before, passes;
  for (const Stage& stage : stages_)
    for (int round = 0; round < (stage.repeat ? 2 : 1); ++round)
      for (const Step& step : stage.steps) {
        passes.push_back(lookup_(step.pass));
        if (!passes.back()) return InvalidArgument("no pass is named '", step.pass, "'");
      }
  for (const PassInfo* pass : passes) {
    if (const Facts lacks = pass->needs & ~have) {
      const auto at_fault = [&](const PassInfo* p) { return (p->breaks & lacks) != 0; };
      const auto breaker = std::find_if(before.rbegin(), before.rend(), at_fault);
      return InvalidArgument(
          pass->name, " needs ", FactNames(lacks), ", which ",
          breaker == before.rend() ? "nothing before it gives" : absl::StrCat((*breaker)->name, " before it breaks"));
    }
    have = (have & ~pass->breaks) | pass->gives;
    before.push_back(pass);
  }
  return have;
}

std::vector<std::string> Pipeline::Passes() const {
  std::vector<std::string> out;
  for (const Stage& s : stages_)
    for (const Step& step : s.steps)
      if (!Holds(out, step.pass)) out.push_back(step.pass);
  return out;
}

}  // namespace kiln
