// Heap algorithms: no overlap, never below the peak, each better than the others somewhere.
#include "compiler/plan/heap.h"

#include <random>

#include "gtest/gtest.h"

namespace kiln {
namespace {

std::vector<HeapValue> RandomValues(std::mt19937* rng) {
  std::vector<HeapValue> out(1 + (*rng)() % 60);
  for (HeapValue& v : out) {
    v.size = 1 + static_cast<int64_t>((*rng)() % 5000);
    if ((*rng)() % 4 == 0) v.size %= 48;
    v.size = std::max<int64_t>(v.size, 1);
    v.begin = (*rng)() % 40;
    v.end = v.begin + static_cast<int64_t>((*rng)() % 12);
  }
  return out;
}

bool Meet(const HeapValue& a, int64_t at, const HeapValue& b, int64_t bt) {
  return a.begin <= b.end && b.begin <= a.end && at < bt + b.size && bt < at + a.size;
}

void ExpectSound(const std::vector<HeapValue>& in, const HeapResult& r) {
  for (size_t a = 0; a < in.size(); ++a) {
    ASSERT_GE(r.offsets[a], 0);
    EXPECT_EQ(r.offsets[a] % AlignmentOf(in[a].size), 0);
    EXPECT_LE(r.offsets[a] + in[a].size, r.total);
    for (size_t b = 0; b < a; ++b) EXPECT_FALSE(Meet(in[a], r.offsets[a], in[b], r.offsets[b]));
  }
}

TEST(Heap, RandomValuesNeverOverlap) {
  std::mt19937 rng(7);
  for (int round = 0; round < 300; ++round) {
    const std::vector<HeapValue> in = RandomValues(&rng);
    const int64_t peak = PeakOf(in);
    int64_t least = INT64_MAX;
    for (const HeapResult& r :
         {GlobalDecreasing(in, HeapOrder::kSpatial), GlobalDecreasing(in, HeapOrder::kTemporal),
          GlobalDecreasing(in, HeapOrder::kArea), GlobalDecreasing(in, HeapOrder::kPressure), LazyBestFit(in)}) {
      ExpectSound(in, r);
      EXPECT_GE(r.total, peak);
      least = std::min(least, r.total);
    }
    const HeapResult best = ChooseBestHeap(in);
    ExpectSound(in, best);
    EXPECT_LE(best.total, least);
    EXPECT_GE(best.total, peak);
  }
}

TEST(Heap, AFullRegionLeavesOutWhatDoesNotFit) {
  std::mt19937 rng(11);
  for (int round = 0; round < 100; ++round) {
    const std::vector<HeapValue> in = RandomValues(&rng);
    const TakenRange taken{128, {4000, 10, 20}};
    const HeapResult r = GlobalDecreasing(in, HeapOrder::kSpatial, 6000, {taken});
    EXPECT_LE(r.total, 6000);
    for (size_t a = 0; a < in.size(); ++a) {
      if (r.offsets[a] < 0) continue;
      EXPECT_FALSE(Meet(in[a], r.offsets[a], taken.value, taken.offset));
      for (size_t b = 0; b < a; ++b) {
        if (r.offsets[b] < 0) continue;
        EXPECT_FALSE(Meet(in[a], r.offsets[a], in[b], r.offsets[b]));
      }
    }
  }
}

// Values that follow one another reuse one place whatever the algorithm.
TEST(Heap, AChainTakesItsTwoLargestNeighbours) {
  std::vector<HeapValue> in;
  for (int64_t k = 0; k < 10; ++k) in.push_back({k % 2 ? 640 : 1280, k, k + 1});
  EXPECT_EQ(PeakOf(in), 1920);
  EXPECT_EQ(ChooseBestHeap(in).total, 1920);
  EXPECT_EQ(LazyBestFit(in).total, 1920);
}

// The last free chunk grows by what it lacks instead of being left behind.
TEST(Heap, LazyBestFitGrowsItsLastChunk) {
  const std::vector<HeapValue> in = {{640, 0, 0}, {1280, 1, 1}};
  EXPECT_EQ(LazyBestFit(in).total, 1280);
}

}  // namespace
}  // namespace kiln
