#include "compiler/sharding/device_mesh.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_join.h"

namespace kiln {
namespace {

constexpr size_t kMostAxes = 24;
constexpr int kMostOrders = 200;

Ints PrimeFactors(int64_t n) {
  Ints out;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) out.push_back(p);
  if (n > 1) out.push_back(n);
  return out;
}

// Empty for 0, 1, ...
Ints NamesOf(int64_t devices, const std::vector<TileSharding>& shardings) {
  std::set<int64_t> seen;
  for (const TileSharding& s : shardings)
    if (s.IsTiled()) seen.insert(s.devices.begin(), s.devices.end());
  if (static_cast<int64_t>(seen.size()) != devices || *seen.rbegin() == devices - 1) return {};
  return Ints(seen.begin(), seen.end());
}

}  // namespace

bool Tiling::IsWhole() const {
  return std::all_of(dims.begin(), dims.end(), [](const Axes& a) { return a.empty(); });
}

AxisMask MaskOf(const Axes& axes) {
  AxisMask out = 0;
  for (int a : axes) out |= AxisMask{1} << a;
  return out;
}

AxisMask Tiling::Used() const {
  AxisMask out = manual;
  for (const Axes& a : dims) out |= MaskOf(a);
  return out;
}

void DeviceMesh::SetAxes(const Ints& sizes) {
  sizes_ = sizes;
  strides_.assign(sizes.size(), 1);
  for (size_t k = sizes.size(); k-- > 1;) strides_[k - 1] = strides_[k] * sizes_[k];
}

DeviceMesh DeviceMesh::Fit(int64_t devices, const std::vector<TileSharding>& shardings) {
  DeviceMesh best;
  best.devices_ = devices;
  const Ints names = NamesOf(devices, shardings);
  best.names_ = names;
  Ints order = PrimeFactors(devices);
  if (order.size() > kMostAxes) return best;
  best.SetAxes(order);
  int64_t most = -1;
  int tried = 0;
  do {
    DeviceMesh one;
    one.devices_ = devices;
    one.names_ = names;
    one.SetAxes(order);
    int64_t expressed = 0;
    for (const TileSharding& s : shardings)
      if (s.IsTiled()) expressed += one.Express(s, static_cast<int64_t>(s.tiles.size())).has_value();
    if (expressed > most) {
      most = expressed;
      best = one;
    }
  } while (++tried < kMostOrders && std::next_permutation(order.begin(), order.end()));
  return best;
}

int64_t DeviceMesh::SizeOf(const Axes& axes) const {
  int64_t n = 1;
  for (int a : axes) n *= size(a);
  return n;
}

int64_t DeviceMesh::PlaceOn(int64_t device, const Axes& axes) const {
  int64_t n = 0;
  for (int a : axes) n = n * size(a) + Digit(device, a);
  return n;
}

std::optional<Tiling> DeviceMesh::Express(const TileSharding& s, int64_t rank) const {
  Tiling out;
  out.dims.resize(static_cast<size_t>(rank));
  if (s.kind == TileSharding::kManual) out.manual = all_axes();
  if (s.kind == TileSharding::kMaximal || s.kind == TileSharding::kUnreduced) return std::nullopt;
  if (!s.IsTiled()) return out;
  if (static_cast<int64_t>(s.tiles.size()) != rank || static_cast<int64_t>(s.devices.size()) != devices_)
    return std::nullopt;
  Ints place(static_cast<size_t>(devices_), -1);
  for (size_t k = 0; k < s.devices.size(); ++k) {
    int64_t device = s.devices[k];
    if (!names_.empty()) {
      const auto at = std::lower_bound(names_.begin(), names_.end(), device);
      device = at != names_.end() && *at == device ? at - names_.begin() : devices_;
    }
    if (device >= devices_) return std::nullopt;
    place[static_cast<size_t>(device)] = static_cast<int64_t>(k);
  }
  for (size_t d = 0; d < s.tiles.size() + s.groups.size(); ++d) {
    const bool data = d < s.tiles.size();
    if (!data && s.groups[d - s.tiles.size()].first == TileSharding::kReplicated) continue;
    // The weight of each axis in the coordinate is what the device at 1 on it, and 0 on all others, has.
    std::vector<std::pair<int64_t, int>> weights;
    for (int a = 0; a < axis_count(); ++a)
      if (const int64_t w = s.CoordinateOf(place[static_cast<size_t>(stride(a))], d); w != 0) weights.push_back({w, a});
    std::sort(weights.begin(), weights.end(), std::greater<>());
    Axes axes;
    for (const auto& w : weights) axes.push_back(w.second);
    for (int64_t device = 0; device < devices_; ++device)
      if (data && PlaceOn(device, axes) != s.CoordinateOf(place[static_cast<size_t>(device)], d)) return std::nullopt;
    if (SizeOf(axes) != (data ? s.tiles[d] : s.groups[d - s.tiles.size()].second)) return std::nullopt;
    if (data)
      out.dims[d] = axes;
    else if (s.groups[d - s.tiles.size()].first == TileSharding::kManual)
      out.manual |= MaskOf(axes);
    else
      return std::nullopt;
  }
  return out;
}

TileSharding DeviceMesh::Written(const Tiling& t) const {
  TileSharding out;
  if (t.manual == all_axes() && axis_count() > 0) {
    out.kind = TileSharding::kManual;
    return out;
  }
  if (t.Used() == 0) return out;
  out.kind = TileSharding::kTiled;
  Axes order, manual, rest;
  for (const Axes& a : t.dims) {
    out.tiles.push_back(SizeOf(a));
    order.insert(order.end(), a.begin(), a.end());
  }
  for (int a = 0; a < axis_count(); ++a) {
    if (t.manual >> a & 1)
      manual.push_back(a);
    else if (!(t.Used() >> a & 1))
      rest.push_back(a);
  }
  if (!manual.empty()) out.groups.push_back({TileSharding::kManual, SizeOf(manual)});
  if (!rest.empty()) out.groups.push_back({TileSharding::kReplicated, SizeOf(rest)});
  order.insert(order.end(), manual.begin(), manual.end());
  order.insert(order.end(), rest.begin(), rest.end());
  out.devices.resize(static_cast<size_t>(devices_));
  for (int64_t device = 0; device < devices_; ++device)
    out.devices[static_cast<size_t>(PlaceOn(device, order))] =
        names_.empty() ? device : names_[static_cast<size_t>(device)];
  return out;
}

// "<=[2,4]T(1,0)": axes that stay neighbours are one dimension of the iota.
std::string DeviceMesh::IotaText(const Tiling& t) const {
  Axes order;
  for (const Axes& a : t.dims) order.insert(order.end(), a.begin(), a.end());
  for (int a = 0; a < axis_count(); ++a)
    if (t.manual >> a & 1) order.push_back(a);
  for (int a = 0; a < axis_count(); ++a)
    if (!(t.Used() >> a & 1)) order.push_back(a);
  std::vector<Axes> runs;
  for (int a : order) {
    if (!runs.empty() && runs.back().back() + 1 == a)
      runs.back().push_back(a);
    else
      runs.push_back({a});
  }
  std::vector<size_t> by_start(runs.size()), rank(runs.size());
  std::iota(by_start.begin(), by_start.end(), 0);
  std::sort(by_start.begin(), by_start.end(), [&](size_t a, size_t b) { return runs[a][0] < runs[b][0]; });
  Ints dims;
  for (size_t k = 0; k < by_start.size(); ++k) {
    dims.push_back(SizeOf(runs[by_start[k]]));
    rank[by_start[k]] = k;
  }
  std::string out = absl::StrCat("<=[", absl::StrJoin(dims, ","), "]");
  if (runs.size() > 1) absl::StrAppend(&out, "T(", absl::StrJoin(rank, ","), ")");
  return out;
}

std::string DeviceMesh::TextOf(const Tiling& t) const {
  const TileSharding s = Written(t);
  if (s.kind == TileSharding::kManual) return "{manual}";
  if (!s.IsTiled()) return "{replicated}";
  Ints tiles = s.tiles;
  for (const auto& g : s.groups) tiles.push_back(g.second);
  std::string out = absl::StrCat("{devices=[", absl::StrJoin(tiles, ","), "]",
                                 names_.empty() ? IotaText(t) : absl::StrJoin(s.devices, ","));
  if (s.groups.size() == 1 && s.groups[0].first == TileSharding::kReplicated) {
    out += " last_tile_dim_replicate";
  } else if (!s.groups.empty()) {
    out += " last_tile_dims={manual";
    out += s.groups.size() > 1 ? ", replicated}" : "}";
  }
  return out + "}";
}

std::vector<Ints> DeviceMesh::Groups(const Axes& axes) const {
  std::vector<Ints> out;
  const int64_t members = SizeOf(axes);
  for (int64_t first = 0; first < devices_; ++first) {
    if (PlaceOn(first, axes) != 0) continue;
    Ints group;
    for (int64_t k = 0; k < members; ++k) {
      int64_t device = first, rest = k;
      for (size_t j = axes.size(); j-- > 0;) {
        device += rest % size(axes[j]) * stride(axes[j]);
        rest /= size(axes[j]);
      }
      group.push_back(device);
    }
    out.push_back(std::move(group));
  }
  return out;
}

Ints LocalDims(const DeviceMesh& mesh, const Ints& dims, const Tiling& t) {
  Ints out = dims;
  for (size_t d = 0; d < t.dims.size() && d < out.size(); ++d) {
    const int64_t n = mesh.SizeOf(t.dims[d]);
    out[d] = (out[d] + n - 1) / n;
  }
  return out;
}

Shape LocalShape(const DeviceMesh& mesh, const Shape& array, const Tiling& t) {
  if (!array.IsArray()) return array;
  if (t.IsWhole()) return array;
  Shape out = Shape::Array(array.type(), LocalDims(mesh, array.dims(), t));
  out.set_layout(array.layout());
  return out;
}

bool CutsEvenly(const DeviceMesh& mesh, const Ints& dims, const Tiling& t) {
  for (size_t d = 0; d < t.dims.size() && d < dims.size(); ++d)
    if (dims[d] % mesh.SizeOf(t.dims[d])) return false;
  return true;
}

}  // namespace kiln
