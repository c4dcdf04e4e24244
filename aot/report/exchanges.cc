// What a program exchanges between devices, how, and what the device does meanwhile.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "aot/report/explanation.h"
#include "codegen/host/offers.h"

namespace kiln {
namespace {

// What the transport that libraries bring along does.
std::string HowOf(const Thunk& t, const std::optional<Exchange>& x, bool on_gpu) {
  if (on_gpu) return "gathered by way of the host";
  if (!x) return "gathered: groups of several sizes";
  if (IsSmallExchange(t, *x)) return "copied and met once";
  if (t.instruction->Is(Opcode::AllReduce)) return "each combines a part, all fetch it";
  if (t.instruction->Is(Opcode::ReduceScatter)) return "each combines its block where the arrays are";
  return "fetched from where it is";
}

class Collector {
 public:
  Collector(const Module& m, bool on_gpu, const std::vector<Explanation::Kernel>& kernels) : m_(m), on_gpu_(on_gpu) {
    for (const Explanation::Kernel& k : kernels) kernels_[k.name] = &k;
  }

  void Add(const ThunkSequence& thunks) {
    std::map<size_t, Offer> offers;
    if (!on_gpu_) offers = OffersOf(thunks, m_.replica_count, m_.partition_count, true);
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
  Explanation::Exchange Of(const Thunk& t) const {
    Explanation::Exchange e;
    const Instruction& i = *t.instruction;
    const auto form = ExchangeOf(i, m_.replica_count, m_.partition_count);
    const std::optional<Exchange> x = form.ok() ? *form : std::nullopt;
    int64_t given = 0;
    for (const Instruction* o : i.operands()) given += o->shape().ByteSize();
    e.name = i.name();
    e.kind = std::string(TextOf(i.opcode()));
    e.how = HowOf(t, x, on_gpu_);
    e.bytes = std::max(given, i.shape().ByteSize());
    if (x) {
      e.members = x->members();
      e.groups = static_cast<int64_t>(x->groups.size());
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
  const bool on_gpu_;
  absl::flat_hash_map<std::string, const Explanation::Kernel*> kernels_;
};

}  // namespace

std::vector<Explanation::Exchange> ExchangesOf(const ThunkSequence& thunks, const Module& m, bool on_gpu,
                                               const std::vector<Explanation::Kernel>& kernels) {
  Collector c(m, on_gpu, kernels);
  c.Add(thunks);
  return std::move(c.out);
}

}  // namespace kiln
