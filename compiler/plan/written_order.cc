#include "compiler/plan/written_order.h"

#include <algorithm>

namespace kiln {
namespace {

void Count(const Computation* c, absl::flat_hash_set<const Computation*>* counted, WrittenOrder* out) {
  if (!counted->insert(c).second) return;
  for (const auto& i : c->instructions()) {
    for (const Computation* f : i->called()) Count(f, counted, out);
    out->insert({i->name(), static_cast<int64_t>(out->size())});
  }
}

// -1: it was not written, nor anything that it holds.
int64_t PlaceOf(const Instruction* i, const WrittenOrder& written) {
  if (const auto it = written.find(i->name()); it != written.end()) return it->second;
  int64_t last = -1;
  if (i->Is(Opcode::Fusion))
    for (const auto& inner : (*i->attrs().calls)->instructions())
      if (!inner->Is(Opcode::Parameter)) last = std::max(last, PlaceOf(inner.get(), written));
  return last;
}

}  // namespace

WrittenOrder WrittenOrderOf(const Module& m) {
  WrittenOrder out;
  absl::flat_hash_set<const Computation*> counted;
  Count(m.entry(), &counted, &out);
  return out;
}

NamedOrder Followed(const WrittenOrder& written, const Module& m) {
  NamedOrder out;
  for (const Computation* c : m.PostOrder()) {
    std::vector<std::pair<int64_t, std::string>> placed;
    for (const auto& i : c->instructions())
      if (const int64_t place = PlaceOf(i.get(), written); place >= 0) placed.emplace_back(place, i->name());
    std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string>& names = out[c->name()];
    for (auto& [place, name] : placed) names.push_back(std::move(name));
  }
  return out;
}

}  // namespace kiln
