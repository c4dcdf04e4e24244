// An order in the making, some of which is held back until something needs it.
//
// Guarantees: what is held keeps its order among itself: with one of them, those held before it are released.
// Cost: a look into a table for each instruction that is asked about.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/plan/overlap.h"

namespace kiln {

class HeldOrder {
 public:
  // How many of those held have to be released before one that `before` stand before.
  size_t Needed(const std::vector<Instruction*>& before) const;

  void Put(Instruction* i) { out_.push_back(i); }
  void Hold(Instruction* i);
  // The first so many of those held.
  void Release(size_t count);

  const std::deque<Instruction*>& held() const { return held_; }

  // What was put and released, with the rest of what is held.
  Order Take();

 private:
  Order out_;
  std::deque<Instruction*> held_;
  absl::flat_hash_map<const Instruction*, size_t> number_;  // of those held, counted from the first ever held
  size_t released_ = 0;
};

}  // namespace kiln
