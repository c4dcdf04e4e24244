#include "compiler/hlo/user_list.h"

#include <algorithm>

namespace kiln {

bool UserList::Contains(const Instruction* user) const {
  if (places_) return places_->contains(user);
  return std::find(list_.begin(), list_.end(), user) != list_.end();
}

void UserList::Add(Instruction* user) {
  constexpr size_t kLong = 64;
  if (Contains(user)) return;
  list_.push_back(user);
  if (places_) {
    (*places_)[user] = list_.size() - 1;
  } else if (list_.size() > kLong) {
    places_ = std::make_unique<absl::flat_hash_map<const Instruction*, size_t>>();
    for (size_t k = 0; k < list_.size(); ++k) (*places_)[list_[k]] = k;
  }
}

void UserList::Remove(Instruction* user) {
  if (!places_) {
    list_.erase(std::remove(list_.begin(), list_.end(), user), list_.end());
    return;
  }
  const auto it = places_->find(user);
  if (it == places_->end()) return;
  const size_t at = it->second;
  places_->erase(it);
  if (at + 1 < list_.size()) {
    list_[at] = list_.back();
    (*places_)[list_[at]] = at;
  }
  list_.pop_back();
}

}  // namespace kiln
