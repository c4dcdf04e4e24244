// Every region between domains has one sharding: the domains around it agree, and nothing inside says otherwise.
#include "absl/strings/str_cat.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/sharding/domain_map.h"

namespace kiln {

absl::StatusOr<bool> DomainVerifier(Module& m, PassContext&) {
  for (const auto& c : m.computations()) {
    DomainMap map(c.get());
    absl::flat_hash_map<int64_t, std::string> of_region;
    const auto agree = [&](const Instruction* at, int64_t region, const std::string& sharding) -> absl::Status {
      const auto [it, fresh] = of_region.insert({region, sharding});
      if (fresh || it->second == sharding) return absl::OkStatus();
      return ErrorAt(at, absl::StrCat("its region is sharded ", it->second, " by one domain and ", sharding, " here"));
    };
    for (const auto& i : c->instructions()) {
      const std::optional<DomainSides> sides = SidesOf(i.get());
      if (!sides) continue;
      RETURN_IF_ERROR(agree(i.get(), map.RegionOf(i.get()), sides->users));
      RETURN_IF_ERROR(agree(i.get(), map.RegionOf(i->operand(0)), sides->operand));
    }
    for (const auto& i : c->instructions())
      if (!i->Is(Opcode::Domain) && i->attrs().sharding && of_region.contains(map.RegionOf(i.get())))
        RETURN_IF_ERROR(agree(i.get(), map.RegionOf(i.get()), i->attrs().sharding->text));
  }
  return false;
}

}  // namespace kiln
