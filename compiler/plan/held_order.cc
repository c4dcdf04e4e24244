#include "compiler/plan/held_order.h"

#include <algorithm>
#include <utility>

namespace kiln {

size_t HeldOrder::Needed(const std::vector<Instruction*>& before) const {
  size_t needed = 0;
  for (const Instruction* b : before)
    if (const auto number = number_.find(b); number != number_.end())
      needed = std::max(needed, number->second - released_ + 1);
  return needed;
}

void HeldOrder::Hold(Instruction* i) {
  number_[i] = released_ + held_.size();
  held_.push_back(i);
}

void HeldOrder::Release(size_t count) {
  for (; count > 0; --count, ++released_) {
    Put(held_.front());
    number_.erase(held_.front());
    held_.pop_front();
  }
}

Order HeldOrder::Take() {
  Release(held_.size());
  return std::move(out_);
}

}  // namespace kiln
