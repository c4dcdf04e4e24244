#include "compiler/hlo/sharding.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "compiler/hlo/annotation.h"
#include "compiler/hlo/mesh.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/hlo/scanner.h"

namespace kiln {
namespace {

absl::Status NotUnderstood(absl::string_view text) {
  return InvalidArgument("the sharding '", text, "' is not understood");
}

absl::StatusOr<int64_t> ReadInteger(Scanner& s, absl::string_view text) {
  const auto n = s.Integer();
  return n.ok() ? n : NotUnderstood(text);
}

absl::Status CheckDevices(const Sharding& s, absl::string_view text) {
  absl::flat_hash_set<int64_t> seen;
  for (int64_t d : s.devices)
    if (d < 0 || d >= kMostMeshDevices || !seen.insert(d).second)
      return InvalidArgument("the sharding '", text, "' names device ", d, " twice, or there is none");
  return absl::OkStatus();
}

// Shardy's sharding, cut along the manual axes only: the others are the compiler's to use.
absl::StatusOr<Sharding> ReadManualSharding(Scanner& s, const Meshes& meshes,
                                            const absl::flat_hash_set<std::string>& manual, absl::string_view text) {
  auto over = ReadMeshSharding(s, meshes);
  if (!over.ok()) return InvalidArgument("the sharding '", text, "' ", over.status().message());
  Sharding out;
  out.kind = Sharding::kTiled;
  for (auto& parts : over->dims) {
    parts.erase(std::remove_if(parts.begin(), parts.end(), [&](const AxisPart& p) { return !manual.contains(p.axis); }),
                parts.end());
    int64_t tiles = 1;
    for (const AxisPart& p : parts) tiles *= p.size;
    out.tiles.push_back(tiles);
  }
  const auto of_tile = DevicesOfTiles(over->mesh, over->dims);
  if (!of_tile) return NotUnderstood(text);
  out.copies = static_cast<int64_t>((*of_tile)[0].size());
  for (const Ints& devices : *of_tile) out.devices.insert(out.devices.end(), devices.begin(), devices.end());
  RETURN_IF_ERROR(CheckDevices(out, text));
  return out;
}

// #sdy.sharding_per_value<[<...>, <...>]> over the meshes of the module.
absl::StatusOr<std::vector<Sharding>> MeshShardings(const Instruction& i, absl::string_view key) {
  const std::string attributes = i.attrs().frontend_attributes ? i.attrs().frontend_attributes->text : "";
  const auto text = FrontendAttribute(attributes, key);
  const auto manual_text = FrontendAttribute(attributes, "xla.sdy.manual_axes");
  if (!text || !manual_text) return InvalidArgument("has no frontend attribute ", key, " or xla.sdy.manual_axes");
  Meshes meshes;
  for (const auto& [name, value] : i.parent()->module()->extra_header) {
    if (name != "frontend_attributes") continue;
    if (const auto list = FrontendAttribute(value, "xla.sdy.meshes")) {
      auto read = ReadMeshes(*list);
      if (!read) return NotUnderstood(*list);
      meshes = *std::move(read);
    }
  }
  absl::flat_hash_set<std::string> manual;
  Scanner axes(*manual_text, "");
  while (!axes.AtEnd()) {
    if (axes.Peek() != '"') {
      axes.set_pos(axes.pos() + 1);
      continue;
    }
    const auto name = axes.Quoted();
    if (!name.ok()) return NotUnderstood(*manual_text);
    manual.insert(*name);
  }
  Scanner s(*text, "");
  if (!s.Eat("#sdy.sharding_per_value") || !s.Eat("<") || !s.Eat("[")) return NotUnderstood(*text);
  std::vector<Sharding> out;
  while (!s.Eat("]")) {
    if (!out.empty() && !s.Eat(",")) return NotUnderstood(*text);
    ASSIGN_OR_RETURN(Sharding one, ReadManualSharding(s, meshes, manual, *text));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

absl::StatusOr<Sharding> ParseSharding(absl::string_view text) {
  Scanner s(text, "");
  Sharding out;
  if (!s.Eat("{")) return NotUnderstood(text);
  const absl::string_view word = s.Word("_");
  if (word == "replicated") return out;
  if (word == "manual") {
    out.kind = Sharding::kManual;
    return out;
  }
  if (word != "devices") {
    if (word.empty()) return NotUnderstood(text);
    out.kind = Sharding::kOther;
    return out;
  }
  out.kind = Sharding::kTiled;
  if (!s.Eat("=")) return NotUnderstood(text);
  if (!s.IntList(&out.tiles)) return NotUnderstood(text);
  int64_t all = 1;
  for (int64_t t : out.tiles) {
    if (t < 1 || all > kMostMeshDevices / t) return NotUnderstood(text);
    all *= t;
  }
  if (s.Eat("<=")) {
    const size_t start = s.pos();
    if (Ints list; !s.IntList(&list)) return NotUnderstood(text);
    if (s.PeekRaw() == 'T') {
      const size_t end = text.find(')', s.pos());
      if (end == text.npos) return NotUnderstood(text);
      s.set_pos(end + 1);
    }
    ASSIGN_OR_RETURN(out.devices, ParseIota(text.substr(start, s.pos() - start)));
  } else {
    do {
      ASSIGN_OR_RETURN(const int64_t d, ReadInteger(s, text));
      out.devices.push_back(d);
    } while (s.Eat(","));
  }
  if (static_cast<int64_t>(out.devices.size()) != all) return NotUnderstood(text);
  size_t groups = 0;  // trailing tile dimensions that do not cut the array
  if (s.Eat("last_tile_dim_replicate")) groups = 1;
  if (s.Eat("last_tile_dims")) {
    if (!s.Eat("=") || !s.Eat("{")) return NotUnderstood(text);
    for (bool first = true; !s.Eat("}"); first = false, ++groups)
      if ((!first && !s.Eat(",")) || s.Word("_").empty()) return NotUnderstood(text);
  }
  if (groups > out.tiles.size()) return NotUnderstood(text);
  for (; groups > 0; --groups) {
    out.copies *= out.tiles.back();
    out.tiles.pop_back();
  }
  RETURN_IF_ERROR(CheckDevices(out, text));
  return out;
}

std::optional<std::string> FrontendAttribute(absl::string_view attributes, absl::string_view key) {
  const std::string text = absl::StrReplaceAll(attributes, {{"\\22", "\\\""}});  // MLIR's way to quote
  Scanner s(text, "");
  if (!s.Eat("{")) return std::nullopt;
  while (!s.AtEnd() && !s.Eat("}")) {
    s.Eat(",");
    const std::string name = s.Name();
    if (name.empty() || !s.Eat("=")) return std::nullopt;
    absl::StatusOr<std::string> value = s.Peek() == '"' ? s.Quoted() : s.Balanced(",");
    if (!value.ok()) return std::nullopt;
    if (name == key) return *std::move(value);
  }
  return std::nullopt;
}

namespace {

// The last tiles of a dimension may lack elements.
bool Makes(const Sharding& s, const Shape& whole, const Shape& tile) {
  bool fits = whole.IsArray() && tile.IsArray() && whole.type() == tile.type() && whole.rank() == tile.rank();
  if (fits && s.kind == Sharding::kTiled) fits = static_cast<int64_t>(s.tiles.size()) == whole.rank();
  for (int64_t d = 0; fits && d < whole.rank(); ++d) {
    const int64_t tiles = s.kind == Sharding::kTiled ? s.tiles[d] : 1;
    fits = tile.dim(d) == (whole.dim(d) + tiles - 1) / tiles;
  }
  return fits;
}

// Where the region is written for some axes, which come first in every dimension, the others may cut the array further:
// to the larger tiles that the region takes, of which devices with parts of one have copies.
void DropFurtherCuts(const Shape& whole, const Shape& tile, Sharding* s) {
  if (s->kind != Sharding::kTiled || static_cast<int64_t>(s->tiles.size()) != whole.rank()) return;
  Ints tiles;
  for (int64_t d = 0; d < whole.rank(); ++d) {
    if (tile.dim(d) == 0 || whole.dim(d) % tile.dim(d)) return;
    tiles.push_back(whole.dim(d) / tile.dim(d));
    if (s->tiles[static_cast<size_t>(d)] % tiles.back()) return;
  }
  std::map<int64_t, Ints> devices;  // of each larger tile
  for (size_t n = 0; n < s->devices.size(); ++n) {
    int64_t rest = static_cast<int64_t>(n) / s->copies, place = 0, weight = 1;
    for (size_t d = tiles.size(); d-- > 0; weight *= tiles[d]) {
      place += rest % s->tiles[d] / (s->tiles[d] / tiles[d]) * weight;
      rest /= s->tiles[d];
    }
    devices[place].push_back(s->devices[n]);
  }
  s->devices.clear();
  for (const auto& [place, of] : devices) s->devices.insert(s->devices.end(), of.begin(), of.end());
  for (size_t d = 0; d < tiles.size(); ++d) s->copies *= s->tiles[d] / tiles[d];
  s->tiles = tiles;
}

// Says that only a subgroup of devices is manual inside.
bool IsWrittenForSome(const Instruction& i, bool inwards) {
  const auto& inside = inwards ? i.attrs().sharding : i.operand(0)->attrs().sharding;
  return inside && absl::StrContains(inside->text, "last_tile_dims={");
}

absl::Status SettleTiles(const Instruction& i, ManualBoundary* b) {
  for (size_t k = 0; k < b->shardings.size(); ++k) {
    Sharding& s = b->shardings[k];
    const Shape& in = i.operand(static_cast<int64_t>(k))->shape();
    const Shape& out = i.shape().IsTuple() ? i.shape().tuple()[k] : i.shape();
    const Shape &whole = b->inwards ? in : out, &tile = b->inwards ? out : in;
    const bool alike = whole.IsArray() && tile.IsArray() && whole.type() == tile.type() && whole.rank() == tile.rank();
    if (alike && !Makes(s, whole, tile) && IsWrittenForSome(i, b->inwards)) DropFurtherCuts(whole, tile, &s);
    if (!Makes(s, whole, tile))
      return ErrorAt(&i,
                     absl::StrCat("its sharding does not make ", tile.ToString(false), " of ", whole.ToString(false)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<ManualBoundary>> ManualBoundaryOf(const Instruction& i) {
  const Boundary boundary = BoundaryOf(i);
  if (boundary == Boundary::kNone) return std::nullopt;
  ManualBoundary out;
  out.inwards = boundary == Boundary::kInwards;
  const bool shardy = i.attrs().custom_call_target->text.rfind("xla.sdy.", 0) == 0;
  if (!shardy) {
    if (i.operand_count() != 1) return ErrorAt(&i, "takes one array");
    // Inwards it is the operand that is cut up.
    const auto& text = out.inwards ? i.operand(0)->attrs().sharding : i.attrs().sharding;
    if (!text && i.shape().Compatible(i.operand(0)->shape())) return std::nullopt;
    if (!text) return ErrorAt(&i, "does not say how the whole array is sharded");
    auto sharding = ParseSharding(text->text);
    if (!sharding.ok()) return ErrorAt(&i, sharding.status().message());
    out.shardings.push_back(*std::move(sharding));
    RETURN_IF_ERROR(SettleTiles(i, &out));
    return out;
  }
  auto shardings = MeshShardings(i, out.inwards ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings");
  if (!shardings.ok()) return ErrorAt(&i, shardings.status().message());
  out.shardings = *std::move(shardings);
  if (static_cast<int64_t>(out.shardings.size()) != i.operand_count())
    return ErrorAt(&i, "has another number of shardings than of arrays");
  if (i.shape().IsTuple() ? i.shape().tuple().size() != out.shardings.size() : out.shardings.size() != 1)
    return ErrorAt(&i, "gives another number of arrays than it takes");
  RETURN_IF_ERROR(SettleTiles(i, &out));
  return out;
}

}  // namespace kiln
