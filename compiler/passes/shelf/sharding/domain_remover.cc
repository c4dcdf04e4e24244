// Takes domains out. What was added between them without a sharding gets its region's.
#include "compiler/pass/pass.h"
#include "compiler/passes/sharding/domain_map.h"

namespace kiln {

absl::StatusOr<bool> DomainRemover(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    DomainMap map(c.get());
    absl::flat_hash_map<int64_t, std::string> of_region;
    for (const auto& i : c->instructions()) {
      const std::optional<DomainSides> sides = SidesOf(i.get());
      if (!sides) continue;
      of_region.insert({map.RegionOf(i.get()), sides->users});
      of_region.insert({map.RegionOf(i->operand(0)), sides->operand});
    }
    std::vector<Instruction*> order = c->PostOrder();
    std::vector<std::pair<Instruction*, std::string>> inherit;
    for (Instruction* i : order) {
      const auto it = of_region.find(map.RegionOf(i));
      if (i->Is(Opcode::Domain) || i->attrs().sharding || it == of_region.end() || it->second.empty() ||
          it->second == "{}")
        continue;
      inherit.push_back({i, it->second});
    }
    bool all = true;
    for (Instruction* i : order) {
      if (!i->Is(Opcode::Domain)) continue;
      if (!ctx.Take()) {
        all = false;
        continue;
      }
      i->ReplaceAllUsesWith(i->operand(0));
      c->Remove(i);
      changed = true;
    }
    if (!all) continue;
    for (auto& [i, text] : inherit) i->mutable_attrs().sharding = text;
  }
  return changed;
}

}  // namespace kiln
