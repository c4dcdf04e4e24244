#include "compiler/plan/heap.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace kiln {
namespace {

// `alignment` is a power of two.
int64_t AlignUp(int64_t x, int64_t alignment) { return (x + alignment - 1) & -alignment; }

// Sum of live sizes at the fullest moment of each value's life.
std::vector<double> Pressure(const std::vector<HeapValue>& values) {
  std::vector<int64_t> times;
  for (const HeapValue& v : values) {
    times.push_back(v.begin);
    times.push_back(v.end + 1);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto at = [&](int64_t t) { return std::lower_bound(times.begin(), times.end(), t) - times.begin(); };
  std::vector<double> live(times.size() + 1, 0);
  for (const HeapValue& v : values) {
    live[at(v.begin)] += static_cast<double>(v.size);
    live[at(v.end + 1)] -= static_cast<double>(v.size);
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  std::vector<double> out;
  for (const HeapValue& v : values)
    out.push_back(*std::max_element(live.begin() + at(v.begin), live.begin() + at(v.end + 1)));
  return out;
}

std::vector<size_t> InOrder(const std::vector<HeapValue>& values, HeapOrder order) {
  const std::vector<double> pressure = order == HeapOrder::kPressure ? Pressure(values) : std::vector<double>();
  auto weight = [&](size_t k) {
    const HeapValue& v = values[k];
    const double length = static_cast<double>(v.end - v.begin + 1), size = static_cast<double>(v.size);
    switch (order) {
      case HeapOrder::kSpatial:
        return std::pair<double, double>(size, 0);
      case HeapOrder::kTemporal:
        return std::pair<double, double>(length, size);
      case HeapOrder::kArea:
        return std::pair<double, double>(size * length, 0);
      case HeapOrder::kPressure:
        return std::pair<double, double>(pressure[k], size);
    }
    return std::pair<double, double>();
  };
  std::vector<size_t> out(values.size());
  std::iota(out.begin(), out.end(), 0);
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) { return weight(a) > weight(b); });
  return out;
}

// Values that have a place, by offset.
class PlacedValues {
 public:
  void Insert(int64_t offset, const HeapValue& v) {
    const auto at = std::upper_bound(offsets_.begin(), offsets_.end(), offset) - offsets_.begin();
    offsets_.insert(offsets_.begin() + at, offset);
    tops_.insert(tops_.begin() + at, offset + v.size);
    begins_.insert(begins_.begin() + at, Short(v.begin));
    ends_.insert(ends_.begin() + at, Short(v.end));
  }

  // Calls take(offset, top) for those that are live while `v` is.
  template <typename F>
  void ForEachBeside(const HeapValue& v, const F& take) const {
    const int32_t begin = Short(v.begin), end = Short(v.end);
    const auto beside = [&](size_t k) { return begins_[k] <= end && begin <= ends_[k]; };
    // Few are: a block of them is ruled out at once.
    size_t from = 0;
    for (; from + kBlock <= offsets_.size(); from += kBlock) {
      int32_t any = 0;
      for (size_t k = from; k < from + kBlock; ++k)
        any |= static_cast<int32_t>(begins_[k] <= end) & static_cast<int32_t>(begin <= ends_[k]);
      if (!any) continue;
      for (size_t k = from; k < from + kBlock; ++k)
        if (beside(k)) take(offsets_[k], tops_[k]);
    }
    for (size_t k = from; k < offsets_.size(); ++k)
      if (beside(k)) take(offsets_[k], tops_[k]);
  }

 private:
  static constexpr size_t kBlock = 16;

  // Times are steps of a program; there are fewer than this holds.
  static int32_t Short(int64_t time) { return static_cast<int32_t>(std::min<int64_t>(time, INT32_MAX)); }

  std::vector<int32_t> begins_, ends_;
  std::vector<int64_t> offsets_, tops_;
};

// Values in the order given, each at the tightest gap.
HeapResult PlaceInOrder(const std::vector<HeapValue>& values, const std::vector<size_t>& order, int64_t capacity,
                        const std::vector<TakenRange>& taken) {
  HeapResult out;
  out.offsets.assign(values.size(), -1);
  PlacedValues placed;
  for (const TakenRange& t : taken) placed.Insert(t.offset, t.value);
  for (size_t k : order) {
    const HeapValue& v = values[k];
    if (v.size > capacity) continue;
    const int64_t alignment = AlignmentOf(v.size);
    int64_t at = 0, best = -1, best_gap = INT64_MAX;
    placed.ForEachBeside(v, [&](int64_t offset, int64_t top) {
      if (offset - at >= v.size && offset - at < best_gap) {
        best = at;
        best_gap = offset - at;
      }
      at = std::max(at, AlignUp(top, alignment));
    });
    if (best < 0) best = at;
    if (best > capacity - v.size) continue;
    out.offsets[k] = best;
    out.total = std::max(out.total, best + v.size);
    placed.Insert(best, v);
  }
  return out;
}

}  // namespace

int64_t AlignmentOf(int64_t size) { return size > 32 ? 64 : size > 16 ? 32 : 16; }

HeapResult GlobalDecreasing(const std::vector<HeapValue>& values, HeapOrder order, int64_t capacity,
                            const std::vector<TakenRange>& taken) {
  return PlaceInOrder(values, InOrder(values, order), capacity, taken);
}

HeapResult LazyBestFit(const std::vector<HeapValue>& values) {
  HeapResult out;
  out.offsets.assign(values.size(), -1);
  // What ends before a time is freed before anything begins at it.
  std::vector<std::tuple<int64_t, int, size_t>> events;
  for (size_t k = 0; k < values.size(); ++k) {
    events.push_back({values[k].begin, 1, k});
    events.push_back({values[k].end + 1, 0, k});
  }
  std::sort(events.begin(), events.end());
  std::map<int64_t, int64_t> free;                // offset to size; no two touch
  std::set<std::pair<int64_t, int64_t>> by_size;  // the same as (size, offset)
  auto take = [&](std::map<int64_t, int64_t>::iterator chunk) {
    by_size.erase({chunk->second, chunk->first});
    return free.erase(chunk);
  };
  auto release = [&](int64_t offset, int64_t size) {
    if (size == 0) return;
    auto next = free.lower_bound(offset);
    if (next != free.end() && offset + size == next->first) {
      size += next->second;
      next = take(next);
    }
    if (next != free.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        take(before);
      }
    }
    free[offset] = size;
    by_size.insert({size, offset});
  };
  for (const auto& [time, begins, k] : events) {
    const HeapValue& v = values[k];
    if (!begins) {
      release(out.offsets[k], v.size);
      continue;
    }
    const int64_t alignment = AlignmentOf(v.size);
    auto best = by_size.lower_bound({v.size, INT64_MIN});
    while (best != by_size.end() && best->first - (AlignUp(best->second, alignment) - best->second) < v.size) ++best;
    int64_t chunk, size;
    if (best != by_size.end()) {
      std::tie(size, chunk) = *best;
      take(free.find(chunk));
    } else if (!free.empty() && std::prev(free.end())->first + std::prev(free.end())->second == out.total) {
      chunk = std::prev(free.end())->first;
      take(std::prev(free.end()));
      size = AlignUp(chunk, alignment) + v.size - chunk;
    } else {
      chunk = out.total;
      size = AlignUp(chunk, alignment) + v.size - chunk;
    }
    const int64_t at = AlignUp(chunk, alignment);
    out.offsets[k] = at;
    out.total = std::max(out.total, at + v.size);
    release(chunk, at - chunk);
    release(at + v.size, chunk + size - at - v.size);
  }
  return out;
}

HeapResult ChooseBestHeap(const std::vector<HeapValue>& values) {
  // Placing values in order is quadratic; so many steps take about a second.
  constexpr int64_t kMostSteps = 100'000'000;
  const auto steps = static_cast<int64_t>(values.size() * values.size() / 2);
  int64_t left = kMostSteps;
  HeapResult best = LazyBestFit(values);
  HeapOrder best_order = HeapOrder::kSpatial;
  int64_t least = INT64_MAX;
  for (HeapOrder order : {HeapOrder::kSpatial, HeapOrder::kPressure, HeapOrder::kArea, HeapOrder::kTemporal}) {
    if ((left -= steps) < 0) break;
    HeapResult other = GlobalDecreasing(values, order);
    if (other.total < least) {
      least = other.total;
      best_order = order;
    }
    if (other.total <= best.total) best = std::move(other);
  }
  constexpr size_t kMostForRepair = 3000;
  constexpr int kMostRounds = 40;
  const int64_t peak = PeakOf(values);
  if (values.size() > kMostForRepair) return best;
  std::vector<size_t> order = InOrder(values, best_order);
  HeapResult now = PlaceInOrder(values, order, INT64_MAX, {});
  for (int round = 0; round < kMostRounds && best.total > peak; ++round) {
    // What reaches the top comes first.
    const auto moved = std::stable_partition(order.begin(), order.end(),
                                             [&](size_t k) { return now.offsets[k] + values[k].size == now.total; });
    if (moved == order.end()) break;
    now = PlaceInOrder(values, order, INT64_MAX, {});
    if (now.total < best.total) best = now;
  }
  return best;
}

int64_t PeakOf(const std::vector<HeapValue>& values) {
  std::vector<std::pair<int64_t, int64_t>> events;
  for (const HeapValue& v : values) {
    events.push_back({v.begin, v.size});
    events.push_back({v.end + 1, -v.size});
  }
  std::sort(events.begin(), events.end());
  int64_t live = 0, peak = 0;
  for (const auto& [time, change] : events) peak = std::max(peak, live += change);
  return peak;
}

}  // namespace kiln
