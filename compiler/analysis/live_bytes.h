// Bytes alive at each step of an order: what is computed and will still be read.
//
// A lower bound of what an arena needs: no fragments, no scratch, nothing of called computations. Arguments and
// constants are not counted; what only names memory (tuples, elements, bitcasts) keeps its source alive.
#pragma once

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

class LiveBytes {
 public:
  struct Range {
    int64_t begin = 0, end = 0;  // first and last step
  };

  explicit LiveBytes(const std::vector<Instruction*>& order) {
    for (const Instruction* i : order) place_[i] = static_cast<int64_t>(place_.size());
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Instruction* i = *it;
      Range r{place_.at(i), place_.at(i)};
      if (i->IsRoot()) r.end = static_cast<int64_t>(order.size());
      for (const Instruction* u : i->users()) r.end = std::max(r.end, Names(u) ? range_.at(u).end : place_.at(u));
      range_[i] = r;
    }
    std::vector<int64_t> bytes(order.size() + 2, 0);
    for (const Instruction* i : order) {
      if (i->Is(Opcode::Parameter) || i->Is(Opcode::Constant) || Names(i)) continue;
      int64_t n = 0;
      ForEachLeaf(i->shape(), [&](const ShapeIndex&, const Shape& s) { n += s.IsArray() ? s.ByteSize() : 0; });
      bytes[static_cast<size_t>(range_.at(i).begin)] += n;
      bytes[static_cast<size_t>(range_.at(i).end) + 1] -= n;
    }
    int64_t now = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      now += bytes[k];
      if (now <= peak_) continue;
      peak_ = now;
      peak_at_ = static_cast<int64_t>(k);
    }
  }

  int64_t peak() const { return peak_; }
  // The first step at which so much is alive.
  int64_t peak_at() const { return peak_at_; }
  int64_t PlaceOf(const Instruction* i) const { return place_.at(i); }
  Range RangeOf(const Instruction* i) const { return range_.at(i); }

 private:
  static bool Names(const Instruction* i) {
    return i->Is(Opcode::Tuple) || i->Is(Opcode::GetTupleElement) || i->Is(Opcode::Bitcast);
  }
  absl::flat_hash_map<const Instruction*, int64_t> place_;
  absl::flat_hash_map<const Instruction*, Range> range_;
  int64_t peak_ = 0, peak_at_ = 0;
};

}  // namespace kiln
