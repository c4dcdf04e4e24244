// How a sort's kernel goes about it: tiles, passes, results and memory.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "codegen/gpu/kernels.h"

namespace kiln::gpu {

// What is sorted: rows of n elements `inner` apart, and how tiles are cut from them.
struct SortPlan {
  explicit SortPlan(const Instruction* sort);

  int64_t n = 1, outer = 1, inner = 1;
  int64_t room = 1;    // slots that a row has in a tile, a power of two
  int64_t rows = 1;    // that a tile holds
  int64_t tiles = 1;   // of a row
  int64_t merges = 0;  // passes over rows of several tiles

  int64_t slots() const { return room * rows; }
  int64_t blocks() const { return (outer * inner + rows - 1) / rows * tiles; }
  int64_t threads() const;
  int levels() const;  // of runs in a tile
};

// Whether the comparator looks at operand `k`.
bool Compares(const Instruction* sort, size_t k);

// What a kernel gives, of `sort` in `i`: for each operand the result that is it, sorted, or -1, and the results that
// are computed of those, by their place.
struct SortResults {
  SortResults(const Instruction* i, const Instruction* sort);

  std::vector<int64_t> plain;
  std::vector<std::pair<size_t, const Instruction*>> made;
};

// Arena bytes: counters, a copy of the operands, and one more of those whose result cannot be the other copy.
struct SortScratch {
  SortScratch(const Instruction* i, const Instruction* sort);

  int64_t bytes = 0;
  std::map<size_t, int64_t> copies, others;  // where they begin, by operand
};

}  // namespace kiln::gpu
