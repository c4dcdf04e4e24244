// The steps of rematerialisation: which there are around a peak, and how one is taken. For rematerialize*.cc alone.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/plan/rematerialize.h"

namespace kiln {

// One way to keep a value out of one peak. Names stand for instructions: they are the same in every copy.
struct Candidate {
  RematerializeStep step;
  // `anchor` runs at the peak; `before_reader` is the last to run before the value is wanted again.
  std::string computation, value, anchor, before_reader;
  std::vector<std::string> readers;  // behind the peak
  std::vector<std::string> early;    // readers before it, which must stay there
  std::vector<std::string> chain;    // recompute: what runs again, operands first
  double cost = 0;                   // bytes that it moves, or as much time
  double gain = 0;                   // bytes
  std::string Key() const { return absl::StrCat(step.kind, " ", computation, " ", value, " ", anchor); }
};

// Adds every way to keep a value of the computation of `at` out of the arena while `at` runs, which reads none of them.
// `base` is the module that `plan` was made for, without the copies that planning put in; values of less than a
// thousandth of `peak_bytes` do not count.
void CollectCandidates(const Module& base, const MemoryPlan& plan, const Instruction* at, int64_t peak_bytes,
                       int64_t slow_capacity, std::vector<Candidate>* out);

// Takes the step. Also puts what is new into `order`, that of the candidate's computation: copies out of the arena as
// early, copies into it as late as they may run. False if the module has not what the candidate names.
bool Apply(Module* m, const Candidate& c, std::vector<std::string>* order);

}  // namespace kiln
