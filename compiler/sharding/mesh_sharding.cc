// Shardy's shardings: dimensions cut along the axes of a mesh that the module's header defines.
#include "compiler/hlo/mesh.h"
#include "compiler/hlo/scanner.h"
#include "compiler/hlo/sharding.h"
#include "compiler/sharding/tile_sharding.h"

namespace kiln {
namespace {

absl::Status Bad(absl::string_view text, absl::string_view why = "is not understood") {
  return InvalidArgument("the sharding '", text, "' ", why);
}

absl::StatusOr<TileSharding> Tiled(const MeshSharding& over, absl::string_view text) {
  TileSharding out;
  out.open = over.open;
  const auto of_tile = DevicesOfTiles(over.mesh, over.dims);
  if (!of_tile) return Bad(text);
  if (of_tile->size() == 1) return out;
  out.kind = TileSharding::kTiled;
  for (const auto& parts : over.dims) {
    int64_t tiles = 1;
    for (const AxisPart& p : parts) tiles *= p.size;
    out.tiles.push_back(tiles);
  }
  for (const Ints& devices : *of_tile) out.devices.insert(out.devices.end(), devices.begin(), devices.end());
  const auto copies = static_cast<int64_t>((*of_tile)[0].size());
  if (copies > 1) out.groups = {{TileSharding::kReplicated, copies}};
  return out;
}

}  // namespace

absl::StatusOr<std::vector<TileSharding>> ParseMeshShardings(const Module& m, absl::string_view text) {
  Meshes meshes;
  for (const auto& [name, value] : m.extra_header) {
    if (name != "frontend_attributes") continue;
    if (const auto list = FrontendAttribute(value, "xla.sdy.meshes")) {
      auto read = ReadMeshes(*list);
      if (!read) return Bad(*list);
      meshes = *std::move(read);
    }
  }
  Scanner s(text, "");
  std::vector<TileSharding> out;
  const auto read = [&]() -> absl::Status {
    auto over = ReadMeshSharding(s, meshes);
    if (!over.ok()) return Bad(text, over.status().message());
    ASSIGN_OR_RETURN(TileSharding one, Tiled(*over, text));
    out.push_back(std::move(one));
    return absl::OkStatus();
  };
  if (!s.Eat("#sdy.sharding_per_value")) {
    if (!s.Eat("#sdy.sharding")) return Bad(text);
    RETURN_IF_ERROR(read());
    return out;
  }
  if (!s.Eat("<") || !s.Eat("[")) return Bad(text);
  while (!s.Eat("]")) {
    if (!out.empty() && !s.Eat(",")) return Bad(text);
    RETURN_IF_ERROR(read());
  }
  return out;
}

}  // namespace kiln
