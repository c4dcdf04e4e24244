// Updates whose new rows are made of old rows nearby: a step of a simulation on a grid, written over the grid itself.
//
// Rows are the slices of the array along its first dimension. A kernel overwrites them from the first to the last and
// keeps copies of the few that later rows still read. Blocks of rows are independent of each other once the rows around
// their ends, the edges, are copied elsewhere.
#pragma once

#include <optional>

#include "compiler/hlo/instruction.h"

namespace kiln {

// What the backend_config of a fusion says whose kernel works like that.
inline constexpr char kRowsInPlace[] = "rows_in_place";

struct RowStencil {
  int64_t first;          // row of the array that is updated first
  int64_t rows;           // that are updated
  int64_t before, after;  // rows around its own that an element reads
  int64_t block;          // rows of a block; the last may have fewer
  int64_t blocks;

  // Of the array of edges, along its first dimension: rows around the ends of blocks, all that lie at one distance from
  // their end side by side. 0: there are no ends.
  int64_t Edges() const { return (before + after) * (blocks - 1); }
};

// `update`, a dynamic-update-slice at constant places, as such a stencil of `value`, which reads the updated array as
// parameter `array`; none if `value` reads it otherwise than elementwise at constant distances, or rows are too short
// or too long.
std::optional<RowStencil> RowStencilOf(const Instruction* update, const Instruction* value, const Instruction* array);

}  // namespace kiln
