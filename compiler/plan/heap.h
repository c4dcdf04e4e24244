// Heap algorithms: offsets for values of known size and lifetime.
//
// What: given intervals of time with a size each, an offset for each such that two that are live at once do not
//   overlap. The total is the memory they take together.
// Guarantees: every offset is a multiple of the value's own alignment (AlignmentOf); results depend on the input's
//   order only to break ties.
// Cost: quadratic in the number of values in the worst case.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln {

struct HeapValue {
  int64_t size = 0;            // bytes
  int64_t begin = 0, end = 0;  // live from `begin` to `end`, both inclusive
};

struct HeapResult {
  std::vector<int64_t> offsets;  // one for each value; -1: not placed (only where a capacity is given)
  int64_t total = 0;             // bytes
};

// Vector loads want 64 bytes; what is smaller than a vector needs no more than it fills. Kernels count on 16.
int64_t AlignmentOf(int64_t size);

enum class HeapOrder {
  kSpatial,   // by size
  kTemporal,  // by length of life, then size
  kArea,      // by size times length of life
  kPressure,  // by how full the heap is at its fullest while they live, then size
};

// By decreasing `order`, each value at the tightest gap among those placed before it. With a `capacity`, a value that
// does not fit below it is left out. `taken` are values that lie at given offsets already.
struct TakenRange {
  int64_t offset;
  HeapValue value;
};
HeapResult GlobalDecreasing(const std::vector<HeapValue>& values, HeapOrder order, int64_t capacity = INT64_MAX,
                            const std::vector<TakenRange>& taken = {});

// In the order of time, each value in the smallest free chunk that holds it; if none does, the heap grows by no more
// than what its last free chunk lacks.
HeapResult LazyBestFit(const std::vector<HeapValue>& values);

// The smallest of all of the above; if that is above the peak, what lies at the top is placed earlier, again and again,
// while that helps.
HeapResult ChooseBestHeap(const std::vector<HeapValue>& values);

// The largest sum of sizes that are live at one time: what no algorithm can undercut.
int64_t PeakOf(const std::vector<HeapValue>& values);

}  // namespace kiln
