// Which value each leaf of each instruction is, by the meaning of HLO alone.
//
// Tuples, their elements, bitcasts, copies and barriers hand values on. An element of a loop's state that the body
// hands through is the same value before, in and after the loop; any other is one value that stands for the state at
// the beginning of whichever iteration, and for the result.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/hlo/instruction.h"
#include "compiler/thunk/check/memory.h"

namespace kiln {

// The values of one computation as one caller runs it.
class ValueFrame {
 public:
  ValueId Of(const Instruction* i, const ShapeIndex& leaf) const;

 private:
  friend class ValueNumbers;
  absl::flat_hash_map<const Instruction*, std::map<ShapeIndex, ValueId>> of_;
};

class ValueNumbers {
 public:
  // `parameters`: the values of each parameter's leaves.
  ValueFrame Enter(const Computation* c, const std::vector<std::map<ShapeIndex, ValueId>>& parameters);
  // The entry, whose parameters are values of their own.
  ValueFrame EnterEntry(const Module& m);
  // A constant is one value, however often its computation runs.
  ValueId OfConstant(const Instruction* constant, const ShapeIndex& leaf = {});
  // Of every leaf of `i`: of a loop, its state at the beginning of an iteration, which is also its result.
  std::map<ShapeIndex, ValueId> All(const ValueFrame& frame, const Instruction* i) const;
  // For messages.
  std::string Name(ValueId v) const;

 private:
  ValueId New(const Instruction* i, const ShapeIndex& leaf);
  bool IsInvariant(const Instruction* loop, const ShapeIndex& leaf);
  // True if the value of this leaf is leaf `index` of the computation's first parameter.
  bool ComesFromState(const Instruction* i, ShapeIndex leaf, const ShapeIndex& index);

  std::vector<std::string> names_;
  std::map<std::pair<int64_t, ShapeIndex>, ValueId> constants_;  // by instruction id
  std::map<std::pair<int64_t, ShapeIndex>, bool> invariant_;
};

}  // namespace kiln
