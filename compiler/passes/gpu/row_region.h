// What can be computed row by row around reductions of rows: the region of a fused softmax or norm. A row's elements
// follow one another, or, of columns, have those of other rows in between.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// The arrays of a region: `rows` values, or `rows` times `length` of them, in row-major order whatever their
// dimensions. `inner`: how many rows lie side by side; an array is [rows / inner][length][inner].
struct RowForm {
  int64_t rows = 0, length = 0, inner = 1;

  bool Whole(const Shape& s) const { return Dense(s) && s.ElementCount() == rows * length; }
  bool Row(const Shape& s) const { return Dense(s) && s.ElementCount() == rows; }
  // A reduction of every row to a value, by one commutative operation.
  bool RowReduce(const Instruction* i) const;
  // A value a row, repeated along the row.
  bool RowBroadcast(const Instruction* i) const;

 private:
  // Whether a row of an array of `s` is what `dims` count: they are neighbours, and behind them there are `inner`
  // elements. Extents of 1 do not matter.
  bool Along(const Shape& s, const Ints& dims) const;
  static bool Dense(const Shape& s) { return s.IsArray() && !s.HasDynamic() && s.HasDefaultLayout(); }
};

struct RowRegion {
  absl::flat_hash_set<const Instruction*> members;
  std::vector<Instruction*> outputs;  // the root first
};

// The largest region of the form that ends in `root`; no members if no reduction comes back to its row in it. `place`:
// where instructions stand in an order of the computation that has operands first.
RowRegion RowRegionOf(Instruction* root, const RowForm& form,
                      const absl::flat_hash_map<const Instruction*, size_t>& place);

}  // namespace kiln
