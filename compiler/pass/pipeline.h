// Passes in stages, with verification, timing, fuel, switches and dumps.
//
// Guarantees: with `verify_each` the verifier runs after every pass that changed the module, and a repeated stage that
//   still changes the module after 25 rounds is an error; otherwise the verifier runs once at the end, and such a stage
//   ends with a note. An unknown pass is an error before any pass runs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/pass/pass.h"

namespace kiln {

struct PipelineOptions {
  // What is known of the module beforehand.
  Facts initial_facts = fact::Typed;
  bool verify_each = false;
  int64_t fuel = -1;
  std::vector<std::string> disabled;
  std::string stop_after;
  // What was measured on GPUs, for the passes that choose algorithms; null: nothing.
  const TuningResults* tuning = nullptr;
  bool f8_products = true;
  Algebra algebra = Algebra::kXla;
  CombinedExchanges combined;
  int64_t folding_steps = PassContext::kFoldingSteps;
  // Directory for HLO after each changing pass; empty writes nothing.
  std::string dump_dir;
  // Only after passes whose name holds a match of this expression (ECMAScript); empty: after all.
  std::string dump_pass_re;
  // Told of the module after each pass that changed it.
  std::function<void(const std::string& pass, const Module& after)> on_change;
  // Told what passes that only look have to say, a line each.
  std::function<void(const std::string& note)> on_note;
};

struct PassRecord {
  std::string pass;
  bool changed = false;
  double ms = 0;
  int64_t instructions = 0;                 // of the whole module afterwards
  std::map<std::string, int64_t> rewrites;  // how often each that has a name was made
};

class Pipeline {
 public:
  using Lookup = std::function<const PassInfo*(absl::string_view)>;
  Pipeline(std::string name, Lookup lookup) : name_(std::move(name)), lookup_(std::move(lookup)) {}

  struct Step {
    std::string pass;
    std::string why;  // it stands where it does
    int rounds = 1;   // until it changes nothing, as often at most
  };
  struct Stage {
    std::string name;
    std::string holds;    // after it
    bool repeat = false;  // until no pass of it changes the module
    std::vector<Step> steps;
    int rounds = 0;  // as often at most, where it repeats; 0: until then, within reason
  };
  Pipeline& Begin(Stage stage) {
    stages_.push_back(std::move(stage));
    return *this;
  }
  // To the stage begun last.
  Pipeline& Add(const std::string& pass, const std::string& why = "") {
    if (stages_.empty()) Begin({name_, "", false, {}});
    stages_.back().steps.push_back({pass, why});
    return *this;
  }
  const std::string& name() const { return name_; }
  const std::vector<Stage>& stages() const { return stages_; }
  std::vector<Stage>& mutable_stages() { return stages_; }
  // The facts that hold after its last pass, by what passes say of themselves; an error where one lacks what it needs.
  absl::StatusOr<Facts> FactsBehind(Facts initial) const;
  absl::Status Run(Module& module, const PipelineOptions& options, std::vector<PassRecord>* records = nullptr) const;
  // Every pass that it runs, once, in the order of first use.
  std::vector<std::string> Passes() const;

 private:
  struct Running;
  absl::Status RunPass(Running* r, const PassInfo* pass, const std::string& next, bool* changed) const;
  absl::Status RunStage(Running* r, size_t stage) const;

  std::string name_;
  Lookup lookup_;
  std::vector<Stage> stages_;
};

}  // namespace kiln
