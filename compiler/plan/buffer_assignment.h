// Where every value lives.
//
// What: maps each array leaf of every scheduled computation to a slice: a parameter, a result, a constant, or an offset
//   in the arena. Values that must share storage (loops, branches, in-place updates, donated parameters) do; values
//   that may (an elementwise loop over an operand that dies there) do where that is free.
//   Until its result is first written, a result's own memory serves as arena too, if that makes the arena smaller.
// Guarantees: two slices of one buffer that are live at once never overlap; offsets are aligned as heap.h says.
// How: live intervals on one flattened clock (loop bodies inside their loop), then the best of heap.h's algorithms.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/plan/alias.h"
#include "compiler/plan/flight.h"
#include "compiler/plan/schedule.h"

namespace kiln {

struct Slice {
  enum Kind { kTemp, kParameter, kResult, kConstant, kSlow } kind = kTemp;
  // Flattened parameter, result or constant number; the slow arena is an argument behind the others.
  int64_t index = 0;
  int64_t offset = 0;  // bytes into the arena or, for a value that borrows it, into the result
  int64_t size = 0;    // bytes
  bool operator==(const Slice& o) const { return kind == o.kind && index == o.index && offset == o.offset; }
};

// One run of storage with its owners, for reports and tests.
struct Allocation {
  Slice slice;
  int64_t begin = 0, end = 0;          // live interval on the flattened clock, both inclusive
  const Instruction* value = nullptr;  // that first writes it
  ShapeIndex index;                    // which leaf of it; kScratchIndex: what it works in
  std::string owner;                   // the value's name
  // The leaf's shape, or "scratch".
  std::string ShapeText() const;
};

class BufferAssignment {
 public:
  static constexpr int64_t kAlignment = 64;     // of the arena itself
  static constexpr int64_t kScratchIndex = -1;  // the leaf under which an instruction's scratch is kept
  // `scratch`: arena bytes that an instruction needs while it runs. `flights`: exchanges whose operands stay until they
  // land.
  static absl::StatusOr<BufferAssignment> Run(const Module& module, const Schedule& schedule,
                                              const std::function<int64_t(const Instruction*)>& scratch = nullptr,
                                              const Flights& flights = {});

  // Slice of an array leaf.
  const Slice& Get(const Instruction* i, const ShapeIndex& index = {}) const {
    return slices_.at({const_cast<Instruction*>(i), index});
  }
  bool Has(const Instruction* i, const ShapeIndex& index = {}) const {
    return slices_.contains({const_cast<Instruction*>(i), index});
  }

  bool HasScratch(const Instruction* i) const { return Has(i, {kScratchIndex}); }
  const Slice& Scratch(const Instruction* i) const { return Get(i, {kScratchIndex}); }

  int64_t temp_bytes() const { return temp_bytes_; }
  // Of the slow arena, where values wait that were sent there (layouts with memory space 5).
  int64_t slow_bytes() const { return slow_bytes_; }
  // Largest sum of live temporaries at one time: what no placement in the arena alone can undercut.
  int64_t peak_bytes() const { return peak_; }
  // What runs at each tick of the clock: an instruction takes one when it begins and one when it ends.
  const std::vector<const Instruction*>& timeline() const { return timeline_; }
  // Bytes of the arena that are taken at each tick.
  std::vector<int64_t> ArenaUse() const;
  // The values that lie in the arena at a tick, the largest first.
  std::vector<const Allocation*> InArenaAt(int64_t tick) const;

  // Every value that is neither a parameter, a constant nor a result.
  const std::vector<Allocation>& temps() const { return temps_; }
  const std::vector<const Instruction*>& constants() const { return constants_; }

 private:
  absl::flat_hash_map<Leaf, Slice> slices_;
  std::vector<Allocation> temps_;
  std::vector<const Instruction*> constants_;
  std::vector<const Instruction*> timeline_;
  int64_t temp_bytes_ = 0, peak_ = 0, slow_bytes_ = 0;
};

}  // namespace kiln
