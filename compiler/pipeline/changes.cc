#include "compiler/pipeline/changes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/base/suggestion.h"
#include "compiler/base/text.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

using Kind = PipelineChange::Kind;
using Stage = Pipeline::Stage;
using Step = Pipeline::Step;

template <typename... Words>
absl::Status Refused(const PipelineChange& c, const Words&... words) {
  return InvalidArgument(c.place, ": error: ", words...);
}

// The table's name of a pass: '-' and '_' are the same.
absl::StatusOr<std::string> PassNamed(const PipelineChange& c, const std::string& name) {
  if (const PassInfo* pass = FindPass(name)) return std::string(pass->name);
  return Refused(c, "no pass is named '", name, "'", SuggestedPass(name));
}

Stage* StageNamed(const std::string& name, Pipeline* p) {
  for (Stage& s : p->mutable_stages())
    if (s.name == name) return &s;
  return nullptr;
}

// The same of a pass that stands for itself where a stage could be meant too.
absl::StatusOr<std::string> PassOrStageNamed(const PipelineChange& c, const Pipeline& p) {
  if (FindPass(c.name)) return PassNamed(c, c.name);
  std::vector<std::string> names;
  for (const Stage& s : p.stages()) names.push_back(s.name);
  for (const PassInfo& pass : AllPasses()) names.emplace_back(pass.name);
  return absl::NotFoundError(absl::StrCat(c.place, ": error: no pass, and no stage of the ", p.name(),
                                          " pipeline, is named '", c.name, "'", Suggestion(c.name, names)));
}

// Not the user's error as long as another pipeline has it.
absl::Status Missing(const PipelineChange& c, const Pipeline& p, const std::string& what) {
  return absl::NotFoundError(absl::StrCat(c.place, ": error: the ", p.name(), " pipeline has no ", what));
}

absl::Status MissingStage(const PipelineChange& c, const Pipeline& p, const std::string& name) {
  std::vector<std::string> names;
  for (const Stage& s : p.stages()) names.push_back(s.name);
  return Missing(c, p, absl::StrCat("stage '", name, "'", Suggestion(name, names)));
}

bool Holds(const Stage& s, const std::string& pass) {
  return std::any_of(s.steps.begin(), s.steps.end(), [&](const Step& step) { return step.pass == pass; });
}

// The stages in which `pass` stands, of those that the change is about.
absl::StatusOr<std::vector<Stage*>> StagesWith(const PipelineChange& c, const std::string& pass, Pipeline* p) {
  std::vector<Stage*> out;
  if (!c.stage.empty() && !StageNamed(c.stage, p)) return MissingStage(c, *p, c.stage);
  for (Stage& s : p->mutable_stages())
    if ((c.stage.empty() || s.name == c.stage) && Holds(s, pass)) out.push_back(&s);
  if (out.empty())
    return Missing(c, *p, absl::StrCat("pass '", pass, "'", c.stage.empty() ? "" : " in stage ", c.stage));
  return out;
}

std::string WhyChanged(const PipelineChange& c) { return absl::StrCat("the config ", Describe(c)); }

absl::Status Enable(const PipelineChange& c, Pipeline* p) {
  ASSIGN_OR_RETURN(const std::string name, PassNamed(c, c.name));
  const Step step = {name, WhyChanged(c)};
  if (!c.before.empty() && !c.after.empty()) return Refused(c, "before and after contradict each other");
  if (c.before.empty() && c.after.empty()) {
    if (c.stage.empty()) return Refused(c, "enable needs a place: before, after or stage");
    Stage* const stage = StageNamed(c.stage, p);
    if (!stage) return MissingStage(c, *p, c.stage);
    stage->steps.push_back(step);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string beside, PassNamed(c, c.before.empty() ? c.after : c.before));
  ASSIGN_OR_RETURN(const std::vector<Stage*> stages, StagesWith(c, beside, p));
  if (stages.size() > 1)
    return Refused(c, "'", beside, "' stands in the stages ",
                   absl::StrJoin(stages, ", ", [](std::string* out, const Stage* s) { *out += s->name; }),
                   "; stage says which");
  std::vector<Step>& steps = stages[0]->steps;
  const auto is = [&](const Step& s) { return s.pass == beside; };
  const auto at = c.after.empty() ? std::find_if(steps.begin(), steps.end(), is)
                                  : std::find_if(steps.rbegin(), steps.rend(), is).base();
  steps.insert(at, step);
  return absl::OkStatus();
}

absl::Status Repeat(const PipelineChange& c, Pipeline* p) {
  constexpr int kMost = 1000;
  if (c.rounds < 0 || c.rounds > kMost) return Refused(c, "rounds is ", c.rounds, ", not 0 to ", kMost);
  if (Stage* const stage = StageNamed(c.name, p)) {
    stage->repeat = c.rounds != 1;
    stage->rounds = c.rounds;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string name, PassOrStageNamed(c, *p));
  ASSIGN_OR_RETURN(const std::vector<Stage*> stages, StagesWith(c, name, p));
  for (Stage* stage : stages)
    for (Step& step : stage->steps)
      if (step.pass == name) step.rounds = c.rounds == 0 ? kMost : c.rounds;
  return absl::OkStatus();
}

absl::Status Replace(const PipelineChange& c, Pipeline* p) {
  std::vector<Step> with;
  for (const std::string& pass : c.with) {
    ASSIGN_OR_RETURN(const std::string name, PassNamed(c, pass));
    with.push_back({name, WhyChanged(c)});
  }
  if (Stage* const stage = StageNamed(c.name, p)) {
    stage->steps = with;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string name, PassOrStageNamed(c, *p));
  ASSIGN_OR_RETURN(const std::vector<Stage*> stages, StagesWith(c, name, p));
  for (Stage* stage : stages) {
    std::vector<Step> steps;
    for (const Step& step : stage->steps)
      if (step.pass == name)
        steps.insert(steps.end(), with.begin(), with.end());
      else
        steps.push_back(step);
    stage->steps = std::move(steps);
  }
  return absl::OkStatus();
}

absl::Status Make(const PipelineChange& c, Pipeline* p) {
  switch (c.kind) {
    case Kind::kEnable:
      return Enable(c, p);
    case Kind::kRepeat:
      return Repeat(c, p);
    case Kind::kReplace:
      return Replace(c, p);
  }
  return absl::OkStatus();
}

// OK if the order of passes can hold, and whoever takes the module behind the pipeline finds what it usually does.
absl::Status CheckOrder(const PipelineChange& c, const Pipeline& usual, const Pipeline& changed) {
  const auto had = usual.FactsBehind(fact::Typed), has = changed.FactsBehind(fact::Typed);
  if (!has.ok()) return Refused(c, "in the ", changed.name(), " pipeline ", has.status().message());
  if (had.ok() && (*had & ~*has))
    return Refused(c, "the ", changed.name(), " pipeline would end without ", FactNames(*had & ~*has));
  return absl::OkStatus();
}

}  // namespace

std::string Describe(const PipelineChange& c) {
  const std::string in = c.pipeline.empty() ? "" : absl::StrCat(" (", c.pipeline, ")"),
                    stage = c.stage.empty() ? "" : absl::StrCat(" in stage ", c.stage);
  switch (c.kind) {
    case Kind::kEnable:
      return absl::StrCat("enables ", c.name,
                          !c.before.empty()  ? absl::StrCat(" before ", c.before, stage)
                          : !c.after.empty() ? absl::StrCat(" after ", c.after, stage)
                                             : absl::StrCat(" at the end of stage ", c.stage),
                          in);
    case Kind::kRepeat:
      return absl::StrCat("repeats ", c.name, stage, c.rounds ? absl::StrCat(" ", c.rounds, " times at most") : "", in);
    case Kind::kReplace:
      return absl::StrCat("replaces ", c.name, stage, " with ",
                          c.with.empty() ? "nothing" : absl::StrJoin(c.with, ", "), in);
  }
  return "";
}

absl::StatusOr<Pipeline> Changed(Pipeline pipeline, const std::vector<PipelineChange>& changes) {
  // One change may mend the order that another breaks: what counts is how it ends.
  const Pipeline usual = pipeline;
  absl::Status broken;
  for (const PipelineChange& c : changes) {
    if (!c.pipeline.empty() && c.pipeline != pipeline.name()) continue;
    const absl::Status made = Make(c, &pipeline);
    if (absl::IsNotFound(made) && c.pipeline.empty()) continue;
    RETURN_IF_ERROR(made);
    const absl::Status holds = CheckOrder(c, usual, pipeline);
    if (holds.ok() || broken.ok()) broken = holds;
  }
  RETURN_IF_ERROR(broken);
  return pipeline;
}

absl::Status CheckChanges(const std::vector<Pipeline>& pipelines, const std::vector<PipelineChange>& changes) {
  std::vector<Pipeline> changed = pipelines;
  for (const PipelineChange& c : changes) {
    absl::Status last = Refused(c, "the config asks for no ", c.pipeline, " program");
    bool made = false;
    for (Pipeline& p : changed) {
      if (!c.pipeline.empty() && c.pipeline != p.name()) continue;
      last = Make(c, &p);
      if (!last.ok() && !absl::IsNotFound(last)) return last;
      made = made || last.ok();
    }
    if (!made) return InvalidArgument(last.message());
  }
  for (const Pipeline& p : pipelines) RETURN_IF_ERROR(Changed(p, changes).status());
  return absl::OkStatus();
}

std::string SuggestedPass(const std::string& name) {
  std::vector<std::string> names;
  for (const PassInfo& pass : AllPasses()) names.emplace_back(pass.name);
  return Suggestion(name, names);
}

}  // namespace kiln
