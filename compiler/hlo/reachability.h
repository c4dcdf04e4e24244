// Which instruction of a computation depends on which, by operands and control edges.
//
// Cost: a bit for every pair, so passes ask Affordable first. Stale after any edit of the computation.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

class Reachability {
 public:
  // At most 50 MB.
  static bool Affordable(const Computation* c) {
    constexpr int64_t kMostInstructions = 20000;
    return c->instruction_count() <= kMostInstructions;
  }

  explicit Reachability(const Computation* c) {
    const std::vector<Instruction*> order = c->PostOrder();
    words_ = (order.size() + 63) / 64;
    bits_.assign(order.size() * words_, 0);
    for (Instruction* i : order) {
      const size_t me = place_.size();
      place_[i] = me;
      bits_[me * words_ + me / 64] |= uint64_t{1} << (me % 64);
      const auto add = [&](const Instruction* from) {
        const size_t p = place_.at(from);
        for (size_t w = 0; w < words_; ++w) bits_[me * words_ + w] |= bits_[p * words_ + w];
      };
      for (const Instruction* o : i->operands()) add(o);
      for (const Instruction* p : i->control_predecessors()) add(p);
    }
  }

  // Whether `to` needs the value of `from` or must wait for it; true for one and the same.
  bool Reaches(const Instruction* from, const Instruction* to) const {
    const size_t f = place_.at(from), t = place_.at(to);
    return bits_[t * words_ + f / 64] >> (f % 64) & 1;
  }

 private:
  absl::flat_hash_map<const Instruction*, size_t> place_;
  std::vector<uint64_t> bits_;
  size_t words_ = 0;
};

}  // namespace kiln
