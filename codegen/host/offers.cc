#include "codegen/host/offers.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
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
    case ThunkKind::LibraryCall:
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

class Finder {
 public:
  Finder(const ThunkSequence& thunks, const OfferRules& rules) : thunks_(thunks), rules_(rules) {}

  std::map<size_t, Offer> Run() {
    for (size_t k = 0; k < thunks_.size(); ++k)
      if (!Closed(k) && MayOffer(k)) Begin(k);
    for (const auto& [k, offer] : out_) begun_at_[offer.from].push_back(k);
    for (auto& [k, offer] : out_) End(k, &offer);
    for (auto o = out_.begin(); o != out_.end();) o = o->second.to - o->second.from < 2 ? out_.erase(o) : std::next(o);
    if (rules_.places > 0) KeepPlaces();
    return std::move(out_);
  }

 private:
  bool Closed(size_t k) const { return k < rules_.closed.size() && rules_.closed[k]; }

  bool MayOffer(size_t k) {
    const Thunk& t = thunks_[k];
    if (t.kind != ThunkKind::Exchange && t.kind != ThunkKind::AllGather) return false;
    if (rules_.places > 0) {
      if (!rules_.target_makes(t)) return false;
      out_[k] = {std::nullopt, k, k + 1, true};
      return true;
    }
    auto exchange = ExchangeOf(*t.instruction, rules_.replicas, rules_.partitions);
    if (!exchange.ok() || !*exchange) return false;
    const bool beside = !IsSmallExchange(t, **exchange);
    if (beside && !rules_.large) return false;
    out_[k] = {*std::move(exchange), k, k + 1, beside};
    return true;
  }

  // The first place where exchange `k` may begin.
  void Begin(size_t k) {
    Offer& offer = out_[k];
    for (; offer.from > 0 && !Closed(offer.from - 1); --offer.from) {
      const Thunk& before = thunks_[offer.from - 1];
      if (AnyOverlap(Touched(before, true), thunks_[k].reads)) break;
      if (offer.beside && (!OnlyComputes(before) || AnyOverlap(Touched(before, false), thunks_[k].writes))) break;
    }
  }

  void End(size_t k, Offer* offer) const {
    const auto read_at = [&](size_t place) {
      const auto begun = begun_at_.find(place);
      return begun != begun_at_.end() && std::any_of(begun->second.begin(), begun->second.end(), [&](size_t other) {
               return AnyOverlap(thunks_[other].reads, thunks_[k].writes);
             });
    };
    for (; offer->to < thunks_.size() && !Closed(offer->to); ++offer->to) {
      const Thunk& next = thunks_[offer->to];
      if (!OnlyComputes(next) || read_at(offer->to) || AnyOverlap(Touched(next, false), thunks_[k].writes)) break;
      if (offer->beside && AnyOverlap(Touched(next, true), thunks_[k].reads)) break;
    }
  }

  // Those that come when no place is free are not offered.
  void KeepPlaces() {
    std::vector<size_t> by_begin, free_from(static_cast<size_t>(rules_.places));
    for (const auto& [k, offer] : out_) by_begin.push_back(k);
    for (size_t place = 0; place < free_from.size(); ++place)
      if (rules_.taken >> place & 1) free_from[place] = thunks_.size();
    std::stable_sort(by_begin.begin(), by_begin.end(),
                     [&](size_t a, size_t b) { return out_.at(a).from < out_.at(b).from; });
    for (const size_t k : by_begin) {
      Offer& offer = out_.at(k);
      const auto place =
          std::find_if(free_from.begin(), free_from.end(), [&](size_t until) { return until <= offer.from; });
      if (place == free_from.end()) {
        out_.erase(k);
        continue;
      }
      offer.place = place - free_from.begin();
      *place = offer.to;
    }
  }

  const ThunkSequence& thunks_;
  const OfferRules& rules_;
  std::map<size_t, Offer> out_;
  absl::flat_hash_map<size_t, std::vector<size_t>> begun_at_;  // exchanges, by the thunk that they begin in front of
};

}  // namespace

bool IsSmallExchange(const Thunk& t, const Exchange& x) {
  int64_t bytes = 0;
  for (const Slice& s : t.reads) bytes += s.size;
  return bytes <= KILN_SMALL_EXCHANGE / x.members();
}

std::map<size_t, Offer> OffersOf(const ThunkSequence& thunks, const OfferRules& rules) {
  return Finder(thunks, rules).Run();
}

}  // namespace kiln
