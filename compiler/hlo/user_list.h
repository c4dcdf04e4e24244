// Who uses an instruction: a set in order of first use.
//
// What: a vector without duplicates. Once it is long, an index makes membership and removal O(1), so that a value with
//   10^5 users costs no more per edit than one with three.
// Guarantees: the order depends on the edits alone. Users stay in order of first use while there are few; removal from
// a
//   long list puts the last user in the place of the one removed.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace kiln {

class Instruction;

class UserList {
 public:
  const std::vector<Instruction*>& list() const { return list_; }
  bool Contains(const Instruction* user) const;
  void Add(Instruction* user);
  void Remove(Instruction* user);

 private:
  std::vector<Instruction*> list_;
  // Places in the list; made when the list grows long.
  std::unique_ptr<absl::flat_hash_map<const Instruction*, size_t>> places_;
};

}  // namespace kiln
