// Rematerialisation: fits a program into an arena that is smaller than its values want.
//
// What: values that a peak of memory carries along without reading them leave the arena until they are read again. Of
//   the three ways the cheapest that is possible goes first:
//     recompute  the value, and what it needs that is gone by then, is computed once more behind the peak
//     compress   predicates wait as one bit each
//     offload    the value is copied to the caller's slow arena and back, if there is one
// Guarantees: results stay bit for bit; nothing random, with side effects or between devices runs twice; the module
//   is left as it was if the limit holds already. Each step is kept only if a new plan shows that it helped.
// Cost: one plan of the whole module for each step that is tried (kMostTrials at most).
// Source: the classic greedy scheme of XLA's HloRematerialization, on real buffers instead of estimates.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/memory_plan.h"

namespace kiln {

struct RematerializeOptions {
  int64_t limit = 0;          // bytes of the arena
  int64_t slow_capacity = 0;  // bytes of the slow arena; 0: there is none
  // Makes a copy of the module ready for planning: copies inserted, dead code gone.
  std::function<absl::Status(Module&)> prepare;
  std::function<int64_t(const Instruction*)> scratch;  // as PlanMemory takes it
  std::function<bool()> take;                          // asked before each step; null: always
};

struct RematerializeStep {
  enum Kind { kRecompute, kCompress, kOffload } kind;
  std::string value;
  int64_t bytes;         // of the value
  int64_t instructions;  // that now run twice
};
const char* ToText(RematerializeStep::Kind kind);

struct RematerializeReport {
  int64_t before = 0, after = 0;  // bytes of the arena
  std::vector<RematerializeStep> steps;
  NamedOrder order;  // that the steps were made for; to be followed if there are any
};

// Edits `m`, which has not passed InsertCopies. It may still be above the limit afterwards: the caller decides.
absl::StatusOr<RematerializeReport> Rematerialize(Module* m, const RematerializeOptions& options);

// What lies in the arena when it is fullest, for a message: the owners, their shapes, bytes and lines.
std::string OwnersOfPeak(const BufferAssignment& buffers, size_t most = 8);

}  // namespace kiln
