// Ordered passes with verification, fixpoints, timing, fuel, switches and dumps.
//
// Guarantees: the verifier runs after every changing pass when `verify_each` is set, else once at the end; an unknown
//   pass name is an error when the pipeline is built; a fixpoint stops at its cap (25) and says so in the log.
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
  int64_t instructions = 0;  // of the whole module afterwards
};

class Pipeline {
 public:
  using Lookup = std::function<const PassInfo*(absl::string_view)>;
  Pipeline(std::string name, Lookup lookup) : name_(std::move(name)), lookup_(std::move(lookup)) {}

  Pipeline& Add(const std::string& pass) {
    steps_.push_back({{pass}, false});
    return *this;
  }
  // Repeats the passes in order until none changes the module.
  Pipeline& FixedPoint(std::vector<std::string> passes) {
    steps_.push_back({std::move(passes), true});
    return *this;
  }
  absl::Status Run(Module& module, const PipelineOptions& options, std::vector<PassRecord>* records = nullptr) const;
  // Every pass that it runs, once, in the order of first use.
  std::vector<std::string> Passes() const;

 private:
  struct Step {
    std::vector<std::string> passes;
    bool repeat;
  };
  static constexpr int kFixpointCap = 25;
  std::string name_;
  Lookup lookup_;
  std::vector<Step> steps_;
};

}  // namespace kiln
