#include "compiler/hlo/sharding.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_replace.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/hlo/scanner.h"

namespace kiln {
namespace {

constexpr int64_t kMostDevices = 1 << 20;

absl::Status NotUnderstood(absl::string_view text) {
  return InvalidArgument("the sharding '", text, "' is not understood");
}

absl::StatusOr<int64_t> ReadInteger(Scanner& s, absl::string_view text) {
  const auto n = s.Integer();
  return n.ok() ? n : NotUnderstood(text);
}

absl::StatusOr<std::string> ReadQuoted(Scanner& s, absl::string_view text) {
  auto q = s.Quoted();
  return q.ok() ? q : NotUnderstood(text);
}

// A word or a quoted text; empty if neither comes next.
std::string ReadName(Scanner& s) { return s.Peek() == '"' ? s.Quoted().value_or("") : std::string(s.Word("_.$-")); }

// [2,1,4]
absl::StatusOr<Ints> ReadInts(Scanner& s, absl::string_view text) {
  if (!s.Eat("[")) return NotUnderstood(text);
  Ints out;
  while (!s.Eat("]")) {
    if (!out.empty() && !s.Eat(",")) return NotUnderstood(text);
    ASSIGN_OR_RETURN(const int64_t n, ReadInteger(s, text));
    out.push_back(n);
  }
  return out;
}

absl::Status CheckDevices(const Sharding& s, absl::string_view text) {
  absl::flat_hash_set<int64_t> seen;
  for (int64_t d : s.devices)
    if (d < 0 || d >= kMostDevices || !seen.insert(d).second)
      return InvalidArgument("the sharding '", text, "' names device ", d, " twice, or there is none");
  return absl::OkStatus();
}

struct Axis {
  std::string name;
  int64_t size, stride;  // of the device's number along it
};
struct Mesh {
  std::vector<Axis> axes;
  Ints devices;  // in row-major order of the axes
};

// <["a"=2, "b"=4], device_ids=[...]>
absl::StatusOr<Mesh> ReadMesh(Scanner& s, absl::string_view text) {
  Mesh m;
  if (!s.Eat("<") || !s.Eat("[")) return NotUnderstood(text);
  while (!s.Eat("]")) {
    if (!m.axes.empty() && !s.Eat(",")) return NotUnderstood(text);
    Axis a;
    ASSIGN_OR_RETURN(a.name, ReadQuoted(s, text));
    if (!s.Eat("=")) return NotUnderstood(text);
    ASSIGN_OR_RETURN(a.size, ReadInteger(s, text));
    if (a.size < 1) return NotUnderstood(text);
    m.axes.push_back(std::move(a));
  }
  int64_t n = 1;
  for (size_t k = m.axes.size(); k-- > 0;) {
    m.axes[k].stride = n;
    if (n > kMostDevices / m.axes[k].size) return NotUnderstood(text);
    n *= m.axes[k].size;
  }
  if (s.Eat(",")) {
    if (!s.Eat("device_ids") || !s.Eat("=")) return NotUnderstood(text);
    ASSIGN_OR_RETURN(m.devices, ReadInts(s, text));
  } else {
    m.devices.resize(static_cast<size_t>(n));
    std::iota(m.devices.begin(), m.devices.end(), 0);
  }
  if (!s.Eat(">") || static_cast<int64_t>(m.devices.size()) != n) return NotUnderstood(text);
  return m;
}

using Meshes = std::map<std::string, Mesh>;

// {mesh = #sdy.mesh<["d"=8]>, other = ...}
absl::StatusOr<Meshes> ReadMeshes(const std::string& text) {
  Meshes out;
  Scanner s(text, "");
  if (!s.Eat("{")) return NotUnderstood(text);
  while (!s.Eat("}")) {
    if (!out.empty() && !s.Eat(",")) return NotUnderstood(text);
    const std::string name = ReadName(s);
    if (name.empty() || !s.Eat("=") || !s.Eat("#sdy.mesh")) return NotUnderstood(text);
    ASSIGN_OR_RETURN(out[name], ReadMesh(s, text));
  }
  return out;
}

// A part of an axis along which a dimension is cut: the device's place on it is number / stride % size.
struct Part {
  int64_t size, stride;
};

// "a" or "a":(2)2, the factor of 2 that comes after a factor of 2.
absl::StatusOr<std::pair<std::string, Part>> ReadPart(Scanner& s, const Mesh& mesh, absl::string_view text) {
  ASSIGN_OR_RETURN(std::string name, ReadQuoted(s, text));
  const auto axis = std::find_if(mesh.axes.begin(), mesh.axes.end(), [&](const Axis& a) { return a.name == name; });
  if (axis == mesh.axes.end()) return NotUnderstood(text);
  Part part{axis->size, axis->stride};
  if (s.Eat(":")) {
    if (!s.Eat("(")) return NotUnderstood(text);
    ASSIGN_OR_RETURN(const int64_t before, ReadInteger(s, text));
    if (!s.Eat(")")) return NotUnderstood(text);
    ASSIGN_OR_RETURN(const int64_t size, ReadInteger(s, text));
    if (before < 1 || size < 1 || axis->size % before || axis->size / before % size) return NotUnderstood(text);
    part = {size, axis->stride * (axis->size / before / size)};
  }
  return std::pair(std::move(name), part);
}

// <@mesh, [{"d"}, {}], replicated={...}>, cut along the manual axes only: the others are the compiler's to use.
absl::StatusOr<Sharding> ReadMeshSharding(Scanner& s, const Meshes& meshes,
                                          const absl::flat_hash_set<std::string>& manual, absl::string_view text) {
  if (!s.Eat("<")) return NotUnderstood(text);
  Mesh mesh;
  if (s.Eat("@")) {
    const std::string name = ReadName(s);
    const auto known = meshes.find(name);
    if (known == meshes.end()) return InvalidArgument("the sharding '", text, "' is over a mesh that is not defined");
    mesh = known->second;
  } else {
    if (!s.Eat("mesh")) return NotUnderstood(text);
    ASSIGN_OR_RETURN(mesh, ReadMesh(s, text));
  }
  if (!s.Eat(",") || !s.Eat("[")) return NotUnderstood(text);
  std::vector<std::vector<Part>> dims;
  while (!s.Eat("]")) {
    if (!dims.empty() && !s.Eat(",")) return NotUnderstood(text);
    if (!s.Eat("{")) return NotUnderstood(text);
    dims.emplace_back();
    for (bool first = true; !s.Eat("}"); first = false) {
      if (!first && !s.Eat(",")) return NotUnderstood(text);
      if (s.Eat("?")) continue;
      ASSIGN_OR_RETURN(auto part, ReadPart(s, mesh, text));
      if (manual.contains(part.first)) dims.back().push_back(part.second);
    }
    if (s.Peek() == 'p') s.Word();  // a priority
  }
  // replicated={...} and unreduced={...} say nothing of tiles.
  if (!s.Balanced(">").ok() || !s.Eat(">")) return NotUnderstood(text);
  Sharding out;
  out.kind = Sharding::kTiled;
  const auto all = static_cast<int64_t>(mesh.devices.size());
  int64_t tiles = 1;
  for (const auto& parts : dims) {
    int64_t n = 1;
    for (const Part& p : parts) {
      n *= p.size;
      tiles *= p.size;
      if (tiles > all) return NotUnderstood(text);  // an axis cuts twice
    }
    out.tiles.push_back(n);
  }
  if (all % tiles) return NotUnderstood(text);
  std::vector<Ints> of_tile(static_cast<size_t>(tiles));
  for (int64_t number = 0; number < all; ++number) {
    int64_t tile = 0;
    for (const auto& parts : dims)
      for (const Part& p : parts) tile = tile * p.size + number / p.stride % p.size;
    of_tile[static_cast<size_t>(tile)].push_back(mesh.devices[static_cast<size_t>(number)]);
  }
  out.copies = all / tiles;
  for (const Ints& devices : of_tile) {
    if (static_cast<int64_t>(devices.size()) != out.copies) return NotUnderstood(text);  // an axis cuts twice
    out.devices.insert(out.devices.end(), devices.begin(), devices.end());
  }
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
      ASSIGN_OR_RETURN(meshes, ReadMeshes(*list));
    }
  }
  absl::flat_hash_set<std::string> manual;
  Scanner axes(*manual_text, "");
  while (!axes.AtEnd()) {
    if (axes.Peek() != '"') {
      axes.set_pos(axes.pos() + 1);
      continue;
    }
    ASSIGN_OR_RETURN(std::string name, ReadQuoted(axes, *manual_text));
    manual.insert(std::move(name));
  }
  Scanner s(*text, "");
  if (!s.Eat("#sdy.sharding_per_value") || !s.Eat("<") || !s.Eat("[")) return NotUnderstood(*text);
  std::vector<Sharding> out;
  while (!s.Eat("]")) {
    if (!out.empty() && !s.Eat(",")) return NotUnderstood(*text);
    ASSIGN_OR_RETURN(Sharding one, ReadMeshSharding(s, meshes, manual, *text));
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
  ASSIGN_OR_RETURN(out.tiles, ReadInts(s, text));
  int64_t all = 1;
  for (int64_t t : out.tiles) {
    if (t < 1 || all > kMostDevices / t) return NotUnderstood(text);
    all *= t;
  }
  if (s.Eat("<=")) {
    const size_t start = s.pos();
    RETURN_IF_ERROR(ReadInts(s, text).status());
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
    const std::string name = ReadName(s);
    if (name.empty() || !s.Eat("=")) return std::nullopt;
    absl::StatusOr<std::string> value = s.Peek() == '"' ? s.Quoted() : s.Balanced(",");
    if (!value.ok()) return std::nullopt;
    if (name == key) return *std::move(value);
  }
  return std::nullopt;
}

namespace {

// That the sharding makes `tile` of `whole`; the last tiles of a dimension may lack elements.
absl::Status CheckTile(const Instruction& i, const Sharding& s, const Shape& whole, const Shape& tile) {
  bool fits = whole.IsArray() && tile.IsArray() && whole.rank() == tile.rank();
  if (fits && s.kind == Sharding::kTiled) fits = static_cast<int64_t>(s.tiles.size()) == whole.rank();
  for (int64_t d = 0; fits && d < whole.rank(); ++d) {
    const int64_t tiles = s.kind == Sharding::kTiled ? s.tiles[d] : 1;
    fits = tile.dim(d) == (whole.dim(d) + tiles - 1) / tiles;
  }
  if (fits) return absl::OkStatus();
  return ErrorAt(&i, absl::StrCat("its sharding does not make ", tile.ToString(false), " of ", whole.ToString(false)));
}

absl::Status CheckTiles(const Instruction& i, const ManualBoundary& b) {
  for (size_t k = 0; k < b.shardings.size(); ++k) {
    const Shape& in = i.operand(static_cast<int64_t>(k))->shape();
    const Shape& out = i.shape().IsTuple() ? i.shape().tuple()[k] : i.shape();
    RETURN_IF_ERROR(CheckTile(i, b.shardings[k], b.inwards ? in : out, b.inwards ? out : in));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<ManualBoundary>> ManualBoundaryOf(const Instruction& i) {
  if (!i.Is(Opcode::CustomCall) || !i.attrs().custom_call_target) return std::nullopt;
  const std::string& target = i.attrs().custom_call_target->text;
  ManualBoundary out;
  if (target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape") {
    out.inwards = target == "SPMDFullToShardShape";
    if (i.operand_count() != 1) return ErrorAt(&i, "takes one array");
    // Inwards it is the operand that is cut up.
    const auto& text = out.inwards ? i.operand(0)->attrs().sharding : i.attrs().sharding;
    if (!text && i.shape().Compatible(i.operand(0)->shape())) return std::nullopt;
    if (!text) return ErrorAt(&i, "does not say how the whole array is sharded");
    auto sharding = ParseSharding(text->text);
    if (!sharding.ok()) return ErrorAt(&i, sharding.status().message());
    out.shardings.push_back(*std::move(sharding));
    RETURN_IF_ERROR(CheckTiles(i, out));
    return out;
  }
  if (target == "xla.sdy.GlobalToLocalShape" || target == "xla.sdy.LocalToGlobalShape") {
    out.inwards = target == "xla.sdy.GlobalToLocalShape";
    auto shardings = MeshShardings(i, out.inwards ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings");
    if (!shardings.ok()) return ErrorAt(&i, shardings.status().message());
    out.shardings = *std::move(shardings);
    if (static_cast<int64_t>(out.shardings.size()) != i.operand_count())
      return ErrorAt(&i, "has another number of shardings than of arrays");
    if (i.shape().IsTuple() ? i.shape().tuple().size() != out.shardings.size() : out.shardings.size() != 1)
      return ErrorAt(&i, "gives another number of arrays than it takes");
    RETURN_IF_ERROR(CheckTiles(i, out));
    return out;
  }
  return std::nullopt;
}

}  // namespace kiln
