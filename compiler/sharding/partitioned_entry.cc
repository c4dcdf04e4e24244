#include "compiler/sharding/partitioned_entry.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/hlo/hlo_parser.h"
#include "compiler/hlo/scanner.h"
#include "compiler/sharding/tile_sharding.h"

namespace kiln {
namespace {

constexpr absl::string_view kArguments = "spmd_parameters_shardings", kResults = "spmd_output_sharding",
                            kWholeArguments = "spmd_parameters_shapes", kWholeResults = "spmd_output_shapes";

std::string TextOf(const Sharding& s) {
  if (s.kind != Sharding::kTiled) return s.kind == Sharding::kManual ? "{manual}" : "{replicated}";
  Ints tiles = s.tiles;
  if (s.copies > 1) tiles.push_back(s.copies);
  return absl::StrCat("{devices=[", absl::StrJoin(tiles, ","), "]", absl::StrJoin(s.devices, ","),
                      s.copies > 1 ? " last_tile_dim_replicate}" : "}");
}

void Put(Module* m, absl::string_view shardings, absl::string_view shapes, const std::vector<PartitionedLeaf>& leaves) {
  std::vector<std::string> cut, whole;
  for (const PartitionedLeaf& l : leaves) {
    cut.push_back(TextOf(l.sharding));
    whole.push_back(l.whole.ToString(false));
  }
  m->extra_header.push_back({std::string(shardings), absl::StrCat("{", absl::StrJoin(cut, ", "), "}")});
  m->extra_header.push_back({std::string(shapes), absl::StrCat("{", absl::StrJoin(whole, ", "), "}")});
}

const std::string* Find(const Module& m, absl::string_view key) {
  for (const auto& [k, v] : m.extra_header)
    if (k == key) return &v;
  return nullptr;
}

bool Get(const Module& m, absl::string_view shardings, absl::string_view shapes, std::vector<PartitionedLeaf>* out) {
  const std::string *cut = Find(m, shardings), *whole = Find(m, shapes);
  if (!cut || !whole) return false;
  const auto parsed = ParseTileShardings(*cut);
  if (!parsed.ok()) return false;
  Scanner s(*whole, "");
  if (!s.Eat("{")) return false;
  for (const TileSharding& one : *parsed) {
    if (!out->empty() && !s.Eat(",")) return false;
    const std::string type(s.Word("_"));
    const auto t = TypeFromText(type);
    if (!t || !s.Eat("[")) return false;
    Ints dims;
    while (!s.Eat("]")) {
      if (!dims.empty() && !s.Eat(",")) return false;
      const auto n = s.Integer();
      if (!n.ok()) return false;
      dims.push_back(*n);
    }
    out->push_back({Shape::Array(*t, dims), ToTable(one)});
  }
  return true;
}

// A part of a whole array as the sharding cuts it: as large as a tile at the array's start.
bool IsPart(const PartitionedLeaf& leaf, const Shape& part, int64_t partitions) {
  const Sharding& s = leaf.sharding;
  if (leaf.whole.type() != part.type() || leaf.whole.rank() != part.rank()) return false;
  if (s.kind != Sharding::kTiled) return s.kind == Sharding::kManual || leaf.whole.dims() == part.dims();
  if (static_cast<int64_t>(s.tiles.size()) != part.rank() || s.copies < 1 ||
      Product(s.tiles) * s.copies != static_cast<int64_t>(s.devices.size()))
    return false;
  for (int64_t d = 0; d < part.rank(); ++d)
    if ((leaf.whole.dim(d) + s.tiles[d] - 1) / s.tiles[d] != part.dim(d)) return false;
  return std::all_of(s.devices.begin(), s.devices.end(), [&](int64_t x) { return x >= 0 && x < partitions; });
}

bool AreParts(const std::vector<PartitionedLeaf>& leaves, const std::vector<const Shape*>& parts, int64_t partitions) {
  if (leaves.size() != parts.size()) return false;
  for (size_t k = 0; k < leaves.size(); ++k)
    if (!IsPart(leaves[k], *parts[k], partitions)) return false;
  return true;
}

void CopyLayouts(const Shape& from, Shape* to) {
  if (to->IsTuple()) {
    for (size_t k = 0; k < to->tuple().size(); ++k) CopyLayouts(from.tuple()[k], &to->mutable_tuple()[k]);
  } else {
    to->set_layout(from.layout());
  }
}

// Tile coordinates of a device; false if it holds none.
bool TileAt(const Sharding& s, int64_t device, Ints* at) {
  const auto found = std::find(s.devices.begin(), s.devices.end(), device);
  if (found == s.devices.end()) return false;
  int64_t n = (found - s.devices.begin()) / s.copies;
  at->assign(s.tiles.size(), 0);
  for (size_t d = s.tiles.size(); d-- > 0;) {
    (*at)[d] = n % s.tiles[d];
    n /= s.tiles[d];
  }
  return true;
}

// Calls fn(place in the tile, place in the whole array, or -1 past its end) for each element of a tile.
template <typename Fn>
void ForEachElement(const Ints& whole, const Ints& tile, const Ints& at, const Fn& fn) {
  const int64_t n = Product(tile);
  for (int64_t k = 0; k < n; ++k) {
    int64_t rest = k, place = 0, stride = 1;
    bool inside = true;
    for (size_t d = tile.size(); d-- > 0;) {
      const int64_t x = rest % tile[d] + at[d] * tile[d];
      rest /= tile[d];
      inside = inside && x < whole[d];
      place += x * stride;
      stride *= whole[d];
    }
    fn(k, inside ? place : -1);
  }
}

}  // namespace

void RecordPartitionedEntry(const PartitionedEntry& entry, Module* m) {
  Put(m, kArguments, kWholeArguments, entry.arguments);
  Put(m, kResults, kWholeResults, entry.results);
  const Computation* c = m->entry();
  if (m->entry_layout) {
    EntryLayout now;
    for (const Instruction* p : c->parameters()) now.parameters.push_back(p->shape());
    now.result = c->root()->shape();
    for (size_t k = 0; k < now.parameters.size(); ++k) CopyLayouts(m->entry_layout->parameters[k], &now.parameters[k]);
    CopyLayouts(m->entry_layout->result, &now.result);
    m->entry_layout = now;
  }
  const auto differs = [&](const AliasEntry& a) {
    const Shape* out = PartAt(c->root()->shape(), a.output);
    const Shape* in = PartAt(c->parameter(a.parameter)->shape(), a.parameter_index);
    return !out || !in || !out->Compatible(*in);
  };
  m->aliases.erase(std::remove_if(m->aliases.begin(), m->aliases.end(), differs), m->aliases.end());
}

std::optional<PartitionedEntry> ReadPartitionedEntry(const Module& m) {
  PartitionedEntry out;
  if (!Get(m, kArguments, kWholeArguments, &out.arguments) || !Get(m, kResults, kWholeResults, &out.results))
    return std::nullopt;
  return out;
}

absl::Status CheckPartitionedEntry(const Module& m) {
  for (const absl::string_view key : {kArguments, kWholeArguments, kResults, kWholeResults}) {
    if (!Find(m, key)) continue;
    std::vector<const Shape*> arguments, results;
    const auto leaf = [](std::vector<const Shape*>* out) {
      return [out](const ShapeIndex&, const Shape& s) { out->push_back(&s); };
    };
    for (const Instruction* p : m.entry()->parameters()) ForEachLeaf(p->shape(), leaf(&arguments));
    ForEachLeaf(m.entry()->root()->shape(), leaf(&results));
    const auto entry = ReadPartitionedEntry(m);
    if (!entry || !AreParts(entry->arguments, arguments, m.partition_count) ||
        !AreParts(entry->results, results, m.partition_count))
      return HeaderErrorAt(m, key, "the entry's arrays are not the parts of whole arrays that the header says",
                           absl::StatusCode::kInvalidArgument);
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

Literal TileOfLiteral(const Literal& whole, const Sharding& s, const Shape& tile, int64_t device) {
  Literal out(Shape::Array(whole.type(), tile.dims()));
  Ints at(tile.dims().size(), 0);
  if (s.kind == Sharding::kTiled) TileAt(s, device, &at);
  ForEachElement(whole.shape().dims(), tile.dims(), at, [&](int64_t k, int64_t place) {
    if (place >= 0) out.Set(k, whole.Get(place));
  });
  return out;
}

Literal JoinTiles(const std::vector<Literal>& tiles, const PartitionedLeaf& leaf) {
  if (leaf.sharding.kind != Sharding::kTiled) return tiles[0];
  Literal out(leaf.whole);
  for (size_t device = tiles.size(); device-- > 0;) {
    Ints at;
    if (!TileAt(leaf.sharding, static_cast<int64_t>(device), &at)) continue;
    ForEachElement(leaf.whole.dims(), tiles[device].shape().dims(), at, [&](int64_t k, int64_t place) {
      if (place >= 0) out.Set(place, tiles[device].Get(k));
    });
  }
  return out;
}

}  // namespace kiln
