// What a config changes about a pipeline: passes that it runs besides, again, or in place of others.
//
// Guarantees: a change that cannot be made is an error, and so is an order of passes that cannot hold: where a pass
// lacks
//   a fact that it needs, or the pipeline ends without one that it ended with.
#pragma once

#include <string>
#include <vector>

#include "compiler/pass/pipeline.h"

namespace kiln {

struct PipelineChange {
  enum class Kind { kEnable, kRepeat, kReplace } kind = Kind::kEnable;
  std::string pipeline;           // "cpu" or "gpu"; empty: each that has what is named below
  std::string name;               // of a pass; of one that stands there or of a stage for kRepeat and kReplace
  std::string before, after;      // kEnable: the pass beside which it runs; neither: at the end of `stage`
  std::string stage;              // that holds the pass; empty: of kEnable the only one, else every one
  int rounds = 0;                 // kRepeat: at most; 0: until nothing changes
  std::vector<std::string> with;  // kReplace
  std::string place;              // where the config says so
};

// "enables dot-merger after dot-decomposer".
std::string Describe(const PipelineChange& change);

// `pipeline` with the changes that are for it, one after the other; NotFound where one names what it has not.
absl::StatusOr<Pipeline> Changed(Pipeline pipeline, const std::vector<PipelineChange>& changes);

// OK if each change can be made in one of the pipelines, or in the one that it names.
absl::Status CheckChanges(const std::vector<Pipeline>& pipelines, const std::vector<PipelineChange>& changes);

// "; did you mean X?" for a name that no pass has.
std::string SuggestedPass(const std::string& name);

}  // namespace kiln
