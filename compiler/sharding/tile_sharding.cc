#include "compiler/sharding/tile_sharding.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/hlo/scanner.h"

namespace kiln {
namespace {

constexpr int64_t kMostDevices = 1 << 20;

// HLO's grammar of shardings.
class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text), s_(text, "") {}

  absl::StatusOr<std::vector<TileSharding>> Read() {
    std::vector<TileSharding> out;
    if (!s_.Eat("{")) return Bad();
    if (s_.Peek() != '{' && s_.Peek() != '}') {
      ASSIGN_OR_RETURN(TileSharding one, ReadOne());
      out.push_back(std::move(one));
      return out;
    }
    while (!s_.Eat("}")) {
      if (!out.empty() && !s_.Eat(",")) return Bad();
      if (!s_.Eat("{")) return Bad();
      ASSIGN_OR_RETURN(TileSharding one, ReadOne());
      out.push_back(std::move(one));
    }
    return out;
  }

 private:
  absl::Status Bad() const { return InvalidArgument("the sharding '", text_, "' is not understood"); }

  // Behind its opening brace.
  absl::StatusOr<TileSharding> ReadOne() {
    TileSharding out;
    const absl::string_view word = s_.Word("_");
    if (word == "devices") {
      RETURN_IF_ERROR(ReadTiles(&out));
    } else if (word == "maximal") {
      out.kind = TileSharding::kMaximal;
      if (!s_.Eat("device") || !s_.Eat("=")) return Bad();
      const auto device = s_.Integer();
      if (!device.ok()) return Bad();
      out.devices = {*device};
    } else {
      const auto kind = KindOf(word);
      if (!kind) return Bad();
      out.kind = *kind;
    }
    if ((s_.Eat("shard_as") || s_.Eat("shard_like")) && !s_.Integer().ok()) return Bad();
    if (s_.Eat("metadata") && (!s_.Eat("=") || !s_.Balanced("}").ok())) return Bad();
    if (!s_.Eat("}")) return Bad();
    return out;
  }

  static std::optional<TileSharding::Kind> KindOf(absl::string_view word) {
    if (word == "replicated") return TileSharding::kReplicated;
    if (word == "manual") return TileSharding::kManual;
    if (word == "unreduced") return TileSharding::kUnreduced;
    if (word == "unknown") return TileSharding::kUnknown;
    if (word == "maximal") return TileSharding::kMaximal;
    return std::nullopt;
  }

  absl::Status ReadTiles(TileSharding* out) {
    out->kind = TileSharding::kTiled;
    if (!s_.Eat("=") || !s_.IntList(&out->tiles)) return Bad();
    int64_t all = 1;
    for (int64_t t : out->tiles) {
      if (t < 1 || all > kMostDevices / t) return Bad();
      all *= t;
    }
    RETURN_IF_ERROR(ReadDevices(out));
    if (static_cast<int64_t>(out->devices.size()) != all) return Bad();
    absl::flat_hash_set<int64_t> seen;
    for (int64_t d : out->devices)
      if (d < 0 || d >= kMostDevices || !seen.insert(d).second)
        return InvalidArgument("the sharding '", text_, "' names device ", d, " twice, or there is none");
    std::vector<TileSharding::Kind> kinds;
    if (s_.Eat("last_tile_dim_replicate")) kinds.push_back(TileSharding::kReplicated);
    if (s_.Eat("last_tile_dims")) {
      if (!s_.Eat("=") || !s_.Eat("{")) return Bad();
      while (!s_.Eat("}")) {
        if (!kinds.empty() && !s_.Eat(",")) return Bad();
        const auto kind = KindOf(s_.Word("_"));
        if (!kind) return Bad();
        kinds.push_back(*kind);
      }
    }
    if (kinds.size() > out->tiles.size()) return Bad();
    const size_t data = out->tiles.size() - kinds.size();
    for (size_t k = 0; k < kinds.size(); ++k) out->groups.push_back({kinds[k], out->tiles[data + k]});
    out->tiles.resize(data);
    return absl::OkStatus();
  }

  absl::Status ReadDevices(TileSharding* out) {
    if (!s_.Eat("<=")) {
      do {
        const auto d = s_.Integer();
        if (!d.ok()) return Bad();
        out->devices.push_back(*d);
      } while (s_.Eat(","));
      return absl::OkStatus();
    }
    const size_t start = (s_.Peek(), s_.pos());
    Ints list;
    if (!s_.IntList(&list)) return Bad();
    if (s_.PeekRaw() == 'T') {
      const size_t end = text_.find(')', s_.pos());
      if (end == absl::string_view::npos) return Bad();
      s_.set_pos(end + 1);
    }
    ASSIGN_OR_RETURN(out->devices, ParseIota(text_.substr(start, s_.pos() - start)));
    return absl::OkStatus();
  }

  const absl::string_view text_;
  Scanner s_;
};

// The verifier reads no frontend attributes: one may speak of more arrays, or of more dimensions, than there are.
absl::Status CheckCounts(const Instruction& i, const std::vector<TileSharding>& written) {
  std::vector<const Shape*> leaves;
  ForEachLeaf(i.shape(), [&](const ShapeIndex&, const Shape& leaf) { leaves.push_back(&leaf); });
  if (written.size() != 1 && written.size() != leaves.size())
    return ErrorAt(&i,
                   absl::StrCat("has a list of shardings for ", written.size(), " arrays, but has ", leaves.size()));
  for (size_t k = 0; k < leaves.size(); ++k) {
    const TileSharding& s = written[written.size() == 1 ? 0 : k];
    if (s.IsTiled() && leaves[k]->IsArray() && static_cast<int64_t>(s.tiles.size()) != leaves[k]->rank())
      return ErrorAt(&i,
                     absl::StrCat("has a sharding of ", s.tiles.size(), " dimensions for rank ", leaves[k]->rank()));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t TileSharding::CoordinateOf(int64_t n, size_t d) const {
  const auto extent = [&](size_t k) { return k < tiles.size() ? tiles[k] : groups[k - tiles.size()].second; };
  for (size_t k = tiles.size() + groups.size() - 1; k > d; --k) n /= extent(k);
  return n % extent(d);
}

absl::StatusOr<std::vector<TileSharding>> ParseTileShardings(absl::string_view text) { return Reader(text).Read(); }

absl::StatusOr<std::vector<TileSharding>> WrittenShardings(const Instruction& i) {
  if (i.attrs().frontend_attributes) {
    if (const auto text = FrontendAttribute(i.attrs().frontend_attributes->text, "xla.sdy.sharding")) {
      auto s = ParseMeshShardings(*i.parent()->module(), *text);
      if (!s.ok()) return ErrorAt(&i, s.status().message());
      RETURN_IF_ERROR(CheckCounts(i, *s));
      return s;
    }
  }
  if (!i.attrs().sharding || absl::StartsWith(i.attrs().sharding->text, "{mesh")) return std::vector<TileSharding>();
  auto s = ParseTileShardings(i.attrs().sharding->text);
  if (!s.ok()) return ErrorAt(&i, s.status().message());
  return s;
}

TileSharding FromTable(const Sharding& table) {
  TileSharding out;
  if (table.kind == Sharding::kManual) out.kind = TileSharding::kManual;
  if (table.kind == Sharding::kOther) out.kind = TileSharding::kUnknown;
  if (table.kind != Sharding::kTiled) return out;
  out.kind = TileSharding::kTiled;
  out.tiles = table.tiles;
  if (table.copies > 1) out.groups = {{TileSharding::kReplicated, table.copies}};
  out.devices = table.devices;
  return out;
}

Sharding ToTable(const TileSharding& s) {
  Sharding out;
  if (s.kind == TileSharding::kManual) out.kind = Sharding::kManual;
  if (s.kind == TileSharding::kMaximal || s.kind == TileSharding::kUnknown) out.kind = Sharding::kOther;
  if (s.kind != TileSharding::kTiled) return out;
  out.kind = Sharding::kTiled;
  out.tiles = s.tiles;
  for (const auto& g : s.groups) out.copies *= g.second;
  out.devices = s.devices;
  return out;
}

}  // namespace kiln
