// Regions of a computation that no domain instruction divides.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// The two sides of a domain instruction's metadata: {kind="sharding", entry={...}, exit={...}}.
struct DomainSides {
  std::string users, operand;  // entry and exit
};
std::optional<DomainSides> SidesOf(const Instruction* domain);
std::string DomainText(const DomainSides& sides);

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
    for (const auto& i : c->instructions())
      if (const auto sides = SidesOf(i.get())) sharding_.insert({Root(i.get()), sides->users});
    for (const auto& i : c->instructions())
      if (const auto sides = SidesOf(i.get())) sharding_.insert({Root(i->operand(0)), sides->operand});
  }

  // -1 if the computation has no domains at all.
  int64_t RegionOf(const Instruction* i) { return any_ ? number_.at(Root(i)) : -1; }

  // What the domains around the region of `i` say of it: those that lead in before those that lead out.
  std::string ShardingOf(const Instruction* i) {
    const auto it = sharding_.find(Root(i));
    return it == sharding_.end() ? "" : it->second;
  }

 private:
  const Instruction* Root(const Instruction* i) {
    while (parent_.at(i) != i) i = parent_[i] = parent_.at(parent_.at(i));
    return i;
  }
  absl::flat_hash_map<const Instruction*, const Instruction*> parent_;
  absl::flat_hash_map<const Instruction*, int64_t> number_;
  absl::flat_hash_map<const Instruction*, std::string> sharding_;
  bool any_ = false;
};

}  // namespace kiln
