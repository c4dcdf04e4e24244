#include "codegen/host/offers.h"

#include <algorithm>

#include "runtime_min/abi.h"

namespace kiln {
namespace {

// What a thunk, or one within it, reads or writes.
void AddTouched(const Thunk& t, bool writes_only, std::vector<Slice>* out) {
  if (!writes_only) out->insert(out->end(), t.reads.begin(), t.reads.end());
  out->insert(out->end(), t.writes.begin(), t.writes.end());
  if (t.scratch.size) out->push_back(t.scratch);
  if (!t.nested.empty()) out->push_back(t.predicate);
  for (const ThunkSequence& n : t.nested)
    for (const Thunk& x : n) AddTouched(x, writes_only, out);
}

bool Overlap(const Slice& a, const Slice& b) {
  const bool one = a.kind == Slice::kTemp || a.kind == Slice::kSlow;  // arena, whatever the index
  return a.kind == b.kind && (one || a.index == b.index) && a.offset < b.offset + b.size &&
         b.offset < a.offset + a.size;
}

bool AnyOverlap(const std::vector<Slice>& a, const std::vector<Slice>& b) {
  for (const Slice& x : a)
    for (const Slice& y : b)
      if (Overlap(x, y)) return true;
  return false;
}

// Kernels and copies, which nobody outside the run sees.
bool OnlyComputes(const Thunk& t) {
  switch (t.kind) {
    case ThunkKind::Kernel:
    case ThunkKind::Copy:
    case ThunkKind::DeviceId:
    case ThunkKind::Exchange:
    case ThunkKind::AllGather:
    case ThunkKind::While:
    case ThunkKind::Conditional:
      return std::all_of(t.nested.begin(), t.nested.end(),
                         [](const ThunkSequence& n) { return std::all_of(n.begin(), n.end(), OnlyComputes); });
    default:
      return false;
  }
}

std::vector<Slice> Touched(const Thunk& t, bool writes_only) {
  std::vector<Slice> slices;
  AddTouched(t, writes_only, &slices);
  return slices;
}

// The first place where exchange `k` may begin.
size_t Beginning(const ThunkSequence& thunks, size_t k, bool beside) {
  size_t from = k;
  for (; from > 0; --from) {
    const Thunk& before = thunks[from - 1];
    if (AnyOverlap(Touched(before, true), thunks[k].reads)) break;
    if (beside && (!OnlyComputes(before) || AnyOverlap(Touched(before, false), thunks[k].writes))) break;
  }
  return from;
}

}  // namespace

bool IsSmallExchange(const Thunk& t, const Exchange& x) {
  int64_t bytes = 0;
  for (const Slice& s : t.reads) bytes += s.size;
  return bytes <= KILN_SMALL_EXCHANGE / x.members();
}

std::map<size_t, Offer> OffersOf(const ThunkSequence& thunks, int64_t replicas, int64_t partitions, bool large) {
  std::map<size_t, Offer> out;
  for (size_t k = 0; k < thunks.size(); ++k) {
    const Thunk& t = thunks[k];
    if (t.kind != ThunkKind::Exchange && t.kind != ThunkKind::AllGather) continue;
    const auto exchange = ExchangeOf(*t.instruction, replicas, partitions);
    if (!exchange.ok() || !*exchange) continue;
    const bool beside = !IsSmallExchange(t, **exchange);
    if (beside && !large) continue;
    out[k] = {**exchange, Beginning(thunks, k, beside), k + 1, beside};
  }
  for (auto& [k, offer] : out) {
    const auto read_at = [&](size_t place) {
      return std::any_of(out.begin(), out.end(), [&](const auto& o) {
        return o.second.from == place && AnyOverlap(thunks[o.first].reads, thunks[k].writes);
      });
    };
    for (; offer.to < thunks.size() && OnlyComputes(thunks[offer.to]) && !read_at(offer.to); ++offer.to) {
      if (AnyOverlap(Touched(thunks[offer.to], false), thunks[k].writes)) break;
      if (offer.beside && AnyOverlap(Touched(thunks[offer.to], true), thunks[k].reads)) break;
    }
  }
  for (auto o = out.begin(); o != out.end();) o = o->second.to - o->second.from < 2 ? out.erase(o) : std::next(o);
  return out;
}

}  // namespace kiln
