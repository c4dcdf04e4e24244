// What a program exchanges between devices, how, and what the device does meanwhile.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "aot/report/explanation.h"
#include "codegen/host/offers.h"

namespace kiln {
namespace {

// What the transport that libraries bring along does.
std::string HowOf(const Thunk& t, const std::optional<Exchange>& x) {
  if (!x) return "gathered: groups of several sizes";
  if (IsSmallExchange(t, *x)) return "copied and met once";
  if (t.instruction->Is(Opcode::AllReduce)) return "each combines a part, all fetch it";
  if (t.instruction->Is(Opcode::ReduceScatter)) return "each combines its block where the arrays are";
  return "fetched from where it is";
}

class Collector {
 public:
  Collector(const Module& m, const std::vector<CollectiveUse>& uses, const std::vector<Explanation::Kernel>& kernels)
      : m_(m), uses_(uses) {
    for (const Explanation::Kernel& k : kernels) kernels_[k.name] = &k;
  }

  void Add(const ThunkSequence& thunks) {
    std::map<size_t, Offer> offers;
    if (ByComm()) offers = OffersOf(thunks, {m_.replica_count, m_.partition_count});
    for (size_t k = 0; k < thunks.size(); ++k) {
      for (const ThunkSequence& n : thunks[k].nested) Add(n);
      if (thunks[k].kind != ThunkKind::Exchange && thunks[k].kind != ThunkKind::AllGather) continue;
      out.push_back(Of(thunks[k]));
      const auto offer = offers.find(k);
      if (offer == offers.end()) continue;
      for (size_t b = offer->second.from; b < offer->second.to; ++b)
        if (b != k) AddWork(thunks[b], &out.back());
    }
  }

  std::vector<Explanation::Exchange> out;

 private:
  // Of a CPU: what begins early is known.
  bool ByComm() const { return !uses_.empty() && uses_[0].transport == "kiln_comm"; }

  Explanation::Exchange Of(const Thunk& t) const {
    const CollectiveUse& use = uses_[out.size()];
    Explanation::Exchange e;
    e.name = use.name;
    e.kind = use.kind;
    e.transport = use.transport;
    e.how = use.algorithm;
    e.bytes = use.bytes;
    e.members = use.group_size;
    e.groups = use.groups;
    if (ByComm()) {
      const auto form = ExchangeOf(*t.instruction, m_.replica_count, m_.partition_count);
      e.how = HowOf(t, form.ok() ? *form : std::nullopt);
    }
    if (const auto k = kernels_.find(e.name); k != kernels_.end()) e.runs = k->second->runs;
    return e;
  }

  void AddWork(const Thunk& t, Explanation::Exchange* e) const {
    ++e->beside;
    if (e->first.empty()) e->first = t.instruction->name();
    e->last = t.instruction->name();
    AddEstimate(t, e);
  }

  void AddEstimate(const Thunk& t, Explanation::Exchange* e) const {
    const auto k = kernels_.find(t.instruction->name());
    const bool exchange = t.kind == ThunkKind::Exchange || t.kind == ThunkKind::AllGather;
    if (!exchange && k != kernels_.end() && k->second->runs > 0)
      e->beside_us += k->second->estimated_us / static_cast<double>(std::max<int64_t>(1, e->runs));
    for (const ThunkSequence& n : t.nested)
      for (const Thunk& inner : n) AddEstimate(inner, e);
  }

  const Module& m_;
  const std::vector<CollectiveUse>& uses_;
  absl::flat_hash_map<std::string, const Explanation::Kernel*> kernels_;
};

}  // namespace

std::vector<Explanation::Exchange> ExchangesOf(const ThunkSequence& thunks, const Module& m,
                                               const std::vector<CollectiveUse>& uses,
                                               const std::vector<Explanation::Kernel>& kernels) {
  Collector c(m, uses, kernels);
  c.Add(thunks);
  return std::move(c.out);
}

}  // namespace kiln
