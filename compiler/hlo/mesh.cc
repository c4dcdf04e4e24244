#include "compiler/hlo/mesh.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/hlo/mlir_string.h"

namespace kiln {
namespace {

absl::Status NotUnderstood() { return InvalidArgument("is not understood"); }

// "a", or "a":(2)2, the factor of 2 that comes after a factor of 2.
std::optional<AxisPart> ReadPart(Scanner& s, const Mesh& mesh) {
  const auto name = s.Quoted();
  if (!name.ok()) return std::nullopt;
  const auto axis =
      std::find_if(mesh.axes.begin(), mesh.axes.end(), [&](const MeshAxis& a) { return a.name == *name; });
  if (axis == mesh.axes.end()) return std::nullopt;
  if (!s.Eat(":")) return AxisPart{*name, axis->size, axis->stride};
  if (!s.Eat("(")) return std::nullopt;
  const auto before = s.Integer();
  if (!before.ok() || !s.Eat(")")) return std::nullopt;
  const auto size = s.Integer();
  if (!size.ok() || *before < 1 || *size < 1 || axis->size % *before || axis->size / *before % *size)
    return std::nullopt;
  return AxisPart{*name, *size, axis->stride * (axis->size / *before / *size)};
}

// Whether a part that was read before it shares the part's places on the axis.
bool CutsAlready(const MeshSharding& s, const AxisPart& part) {
  for (const auto& parts : s.dims)
    for (const AxisPart& p : parts)
      if (p.axis == part.axis && ((p.stride == part.stride && p.size == part.size) ||
                                  (p.stride < part.stride * part.size && part.stride < p.stride * p.size)))
        return true;
  return false;
}

bool CountsUp(const Ints& devices) {
  for (size_t k = 0; k < devices.size(); ++k)
    if (devices[k] != static_cast<int64_t>(k)) return false;
  return true;
}

}  // namespace

std::optional<Mesh> ReadMesh(Scanner& s) {
  Mesh m;
  if (!s.Eat("<") || !s.Eat("[")) return std::nullopt;
  while (!s.Eat("]")) {
    if (!m.axes.empty() && !s.Eat(",")) return std::nullopt;
    auto name = s.Quoted();
    if (!name.ok() || !s.Eat("=")) return std::nullopt;
    const auto size = s.Integer();
    if (!size.ok() || *size < 1) return std::nullopt;
    m.axes.push_back({*std::move(name), *size, 1});
  }
  int64_t n = 1;
  for (size_t k = m.axes.size(); k-- > 0;) {
    m.axes[k].stride = n;
    if (n > kMostMeshDevices / m.axes[k].size) return std::nullopt;
    n *= m.axes[k].size;
  }
  m.devices.resize(static_cast<size_t>(n));
  std::iota(m.devices.begin(), m.devices.end(), 0);
  if (s.Eat(",") && (!s.Eat("device_ids") || !s.Eat("=") || !s.IntList(&m.devices))) return std::nullopt;
  if (!s.Eat(">") || static_cast<int64_t>(m.devices.size()) != n) return std::nullopt;
  return m;
}

std::string MeshText(const Mesh& mesh) {
  const std::string axes = absl::StrJoin(mesh.axes, ", ", [](std::string* out, const MeshAxis& a) {
    absl::StrAppend(out, QuoteMlir(a.name), "=", a.size);
  });
  const std::string devices =
      CountsUp(mesh.devices) ? "" : absl::StrCat(", device_ids=[", absl::StrJoin(mesh.devices, ", "), "]");
  return absl::StrCat("<[", axes, "]", devices, ">");
}

std::optional<Meshes> ReadMeshes(absl::string_view text) {
  Meshes out;
  Scanner s(text, "");
  if (!s.Eat("{")) return std::nullopt;
  while (!s.Eat("}")) {
    if (!out.empty() && !s.Eat(",")) return std::nullopt;
    const std::string name = s.Name();
    if (name.empty() || !s.Eat("=") || !s.Eat("#sdy.mesh")) return std::nullopt;
    auto mesh = ReadMesh(s);
    if (!mesh) return std::nullopt;
    out[name] = *std::move(mesh);
  }
  return out;
}

absl::StatusOr<MeshSharding> ReadMeshSharding(Scanner& s, const Meshes& meshes) {
  if (!s.Eat("<")) return NotUnderstood();
  MeshSharding out;
  if (s.Eat("@")) {
    const auto known = meshes.find(s.Name());
    if (known == meshes.end()) return InvalidArgument("is over a mesh that is not defined");
    out.mesh = known->second;
  } else {
    auto mesh = s.Eat("mesh") ? ReadMesh(s) : std::nullopt;
    if (!mesh) return NotUnderstood();
    out.mesh = *std::move(mesh);
  }
  if (!s.Eat(",") || !s.Eat("[")) return NotUnderstood();
  while (!s.Eat("]")) {
    if (!out.dims.empty() && !s.Eat(",")) return NotUnderstood();
    if (!s.Eat("{")) return NotUnderstood();
    out.dims.emplace_back();
    out.open.push_back(false);
    for (bool first = true; !s.Eat("}"); first = false) {
      if (!first && !s.Eat(",")) return NotUnderstood();
      if (s.Eat("?")) {
        out.open.back() = true;
        continue;
      }
      auto part = ReadPart(s, out.mesh);
      if (!part) return NotUnderstood();
      if (CutsAlready(out, *part)) return InvalidArgument("cuts along axis \"", part->axis, "\" twice");
      out.dims.back().push_back(*std::move(part));
    }
    if (s.Peek() == 'p') s.Word();  // a priority
  }
  // replicated={...} and unreduced={...} say nothing of tiles.
  if (!s.Balanced(">").ok() || !s.Eat(">")) return NotUnderstood();
  return out;
}

std::optional<std::vector<Ints>> DevicesOfTiles(const Mesh& mesh, const std::vector<std::vector<AxisPart>>& dims) {
  const auto all = static_cast<int64_t>(mesh.devices.size());
  int64_t tiles = 1;
  for (const auto& parts : dims)
    for (const AxisPart& p : parts) {
      if (p.size > all / tiles) return std::nullopt;
      tiles *= p.size;
    }
  std::vector<Ints> out(static_cast<size_t>(tiles));
  for (int64_t place = 0; place < all; ++place) {
    int64_t tile = 0;
    for (const auto& parts : dims)
      for (const AxisPart& p : parts) tile = tile * p.size + place / p.stride % p.size;
    out[static_cast<size_t>(tile)].push_back(mesh.devices[static_cast<size_t>(place)]);
  }
  for (const Ints& devices : out)
    if (static_cast<int64_t>(devices.size()) * tiles != all) return std::nullopt;
  return out;
}

}  // namespace kiln
