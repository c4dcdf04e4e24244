#include "compiler/passes/sharding/reshard_path.h"

#include <algorithm>
#include <map>
#include <set>

namespace kiln {
namespace {

constexpr size_t kMostTilings = 4096;

using Dims = std::vector<Axes>;

Axes Joined(const Axes& a, const Axes& b) {
  Axes out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

AxisMask CutBy(const Tiling& t) {
  AxisMask out = 0;
  for (const Axes& of : t.dims) out |= MaskOf(of);
  return out;
}

// What came to a tiling.
struct Step {
  int64_t cost = 0;
  Dims before;
  ReshardMove move;
};

class Search {
 public:
  Search(const DeviceMesh& mesh, const Shape& whole, const Tiling& from, const Tiling& target)
      : mesh_(mesh), whole_(whole), from_(from), target_(target) {}

  std::optional<ReshardPath> Run() {
    steps_[from_.dims] = {};
    open_.insert({0, from_.dims});
    std::set<Dims> done;
    while (!open_.empty() && done.size() < kMostTilings) {
      const auto [cost, dims] = *open_.begin();
      open_.erase(open_.begin());
      if (!done.insert(dims).second) continue;
      if (dims == target_.dims) return PathTo(dims);
      Look({dims, from_.manual}, cost);
    }
    return std::nullopt;
  }

 private:
  ReshardPath PathTo(Dims dims) const {
    ReshardPath out;
    out.cost = steps_.at(dims).cost;
    while (dims != from_.dims) {
      const Step& s = steps_.at(dims);
      out.moves.push_back(s.move);
      dims = s.before;
    }
    std::reverse(out.moves.begin(), out.moves.end());
    return out;
  }

  int64_t Bytes(const Tiling& t) const { return LocalShape(mesh_, whole_, t).ByteSize(); }

  void Offer(const Tiling& before, int64_t cost, ReshardMove move) {
    if (move.after.dims == before.dims || !CutsEvenly(mesh_, whole_.dims(), move.after)) return;
    // A slice is a copy.
    cost += move.kind == ReshardMove::kSlice ? 1 : kPathExchange + std::max(Bytes(before), Bytes(move.after));
    const auto known = steps_.find(move.after.dims);
    if (known != steps_.end() && known->second.cost <= cost) return;
    open_.insert({cost, move.after.dims});
    Step& s = steps_[move.after.dims];
    s = {cost, before.dims, std::move(move)};
  }

  // Whether dimension `d` may be cut along `axis` too, and is not cut further than the target.
  bool HasRoom(const Tiling& t, size_t d, const Axes& axes) const {
    return mesh_.SizeOf(target_.dims[d]) % (mesh_.SizeOf(t.dims[d]) * mesh_.SizeOf(axes)) == 0;
  }

  void Look(const Tiling& t, int64_t cost) {
    const size_t rank = t.dims.size();
    const AxisMask absent = CutBy(target_) & ~t.Used();
    for (size_t d = 0; d < rank; ++d) {
      for (int a = 0; a < mesh_.axis_count(); ++a) {
        if (!(absent >> a & 1) || !HasRoom(t, d, {a})) continue;
        ReshardMove m{ReshardMove::kSlice, d, d, {a}, t};
        m.after.dims[d].push_back(a);
        Offer(t, cost, std::move(m));
      }
      for (size_t n = 1; n <= t.dims[d].size(); ++n) {
        const Axes last(t.dims[d].end() - static_cast<std::ptrdiff_t>(n), t.dims[d].end());
        ReshardMove gather{ReshardMove::kGather, d, d, last, t};
        gather.after.dims[d].resize(t.dims[d].size() - n);
        for (size_t e = 0; e < rank; ++e) {
          if (e == d || !HasRoom(t, e, last)) continue;
          ReshardMove m = gather;
          m.kind = ReshardMove::kExchange;
          m.to = e;
          m.after.dims[e] = Joined(t.dims[e], last);
          Offer(t, cost, std::move(m));
        }
        Offer(t, cost, std::move(gather));
      }
    }
    LookAtPermutations(t, cost);
  }

  void LookAtPermutations(const Tiling& t, int64_t cost) {
    const auto offer = [&](Dims dims) {
      ReshardMove m{ReshardMove::kPermute, 0, 0, {}, t};
      m.after.dims = std::move(dims);
      Offer(t, cost, std::move(m));
    };
    bool alike = true;
    for (size_t d = 0; d < t.dims.size(); ++d)
      alike = alike && mesh_.SizeOf(t.dims[d]) == mesh_.SizeOf(target_.dims[d]);
    if (alike) return offer(target_.dims);
    for (size_t d = 0; d < t.dims.size(); ++d) {
      Dims dims = t.dims;
      dims[d] = WantedFirst(t, d);
      offer(dims);
    }
    if (auto dims = Aligned(t)) offer(*std::move(dims));
  }

  // The dimension's axes, of which those that stay come first, as the target has them.
  Axes WantedFirst(const Tiling& t, size_t d) const {
    Axes out, rest;
    for (int a : target_.dims[d])
      if (MaskOf(t.dims[d]) >> a & 1) out.push_back(a);
    for (int a : t.dims[d])
      if (!(MaskOf(out) >> a & 1)) rest.push_back(a);
    return Joined(out, rest);
  }

  // Each dimension begins as the target's as far as parts of this size can, and the axes that there are fill them up:
  // those that change their dimension afterwards, then those that go.
  std::optional<Dims> Aligned(const Tiling& t) const {
    Dims dims(t.dims.size());
    Axes rest;
    AxisMask placed = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      bool fits = true;
      for (int a : target_.dims[d]) {
        fits = fits && mesh_.SizeOf(t.dims[d]) % (mesh_.SizeOf(dims[d]) * mesh_.size(a)) == 0;
        if (fits) dims[d].push_back(a);
        if (!fits && (CutBy(t) >> a & 1)) rest.push_back(a);
        placed |= AxisMask{1} << a;
      }
    }
    for (const Axes& of : t.dims)
      for (int a : of)
        if (!(placed >> a & 1)) rest.push_back(a);
    for (size_t d = 0; d < dims.size(); ++d)
      for (auto a = rest.begin(); a != rest.end();) {
        if (mesh_.SizeOf(t.dims[d]) % (mesh_.SizeOf(dims[d]) * mesh_.size(*a))) {
          ++a;
          continue;
        }
        dims[d].push_back(*a);
        a = rest.erase(a);
      }
    for (size_t d = 0; d < dims.size(); ++d)
      if (mesh_.SizeOf(dims[d]) != mesh_.SizeOf(t.dims[d])) return std::nullopt;
    return dims;
  }

  const DeviceMesh& mesh_;
  const Shape& whole_;
  const Tiling &from_, &target_;
  std::map<Dims, Step> steps_;
  std::set<std::pair<int64_t, Dims>> open_;
};

}  // namespace

std::optional<ReshardPath> CheapestPath(const DeviceMesh& mesh, const Shape& whole, const Tiling& from,
                                        const Tiling& target) {
  if (!CutsEvenly(mesh, whole.dims(), from) || !CutsEvenly(mesh, whole.dims(), target) || (CutBy(target) & from.manual))
    return std::nullopt;
  return Search(mesh, whole, from, target).Run();
}

}  // namespace kiln
