// Regions of a computation that no domain instruction divides.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

class DomainMap {
 public:
  explicit DomainMap(const Computation* c) {
    for (const auto& i : c->instructions()) {
      if (i->Is(Opcode::Domain)) any_ = true;
      parent_[i.get()] = i.get();
    }
    // A domain belongs to the region of its users; the edge from its operand is what it cuts.
    for (const auto& i : c->instructions())
      if (!i->Is(Opcode::Domain))
        for (const Instruction* o : i->operands()) parent_[Root(o)] = Root(i.get());
    for (const auto& i : c->instructions()) number_.insert({Root(i.get()), static_cast<int64_t>(number_.size())});
  }

  // -1 if the computation has no domains at all.
  int64_t RegionOf(const Instruction* i) { return any_ ? number_.at(Root(i)) : -1; }

 private:
  const Instruction* Root(const Instruction* i) {
    while (parent_.at(i) != i) i = parent_[i] = parent_.at(parent_.at(i));
    return i;
  }
  absl::flat_hash_map<const Instruction*, const Instruction*> parent_;
  absl::flat_hash_map<const Instruction*, int64_t> number_;
  bool any_ = false;
};

// The two sides of a domain instruction's metadata: {kind="sharding", entry={...}, exit={...}}.
struct DomainSides {
  std::string users, operand;  // entry and exit
};
std::optional<DomainSides> SidesOf(const Instruction* domain);
std::string DomainText(const DomainSides& sides);

}  // namespace kiln
