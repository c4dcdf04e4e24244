// Shardy's shardings: dimensions cut along the axes of a mesh that the module's header defines.
#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/hlo/scanner.h"
#include "compiler/sharding/tile_sharding.h"

namespace kiln {
namespace {

struct Axis {
  std::string name;
  int64_t size, stride;  // of a device's place in the mesh
};
struct Mesh {
  std::vector<Axis> axes;
  Ints devices;
};
struct Part {
  int64_t size, stride;
};

class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text), s_(text, "") {}

  absl::StatusOr<std::map<std::string, Mesh>> ReadMeshes() {
    std::map<std::string, Mesh> out;
    if (!s_.Eat("{")) return Bad();
    while (!s_.Eat("}")) {
      if (!out.empty() && !s_.Eat(",")) return Bad();
      const std::string name = Name();
      if (name.empty() || !s_.Eat("=") || !s_.Eat("#sdy.mesh")) return Bad();
      ASSIGN_OR_RETURN(out[name], ReadMesh());
    }
    return out;
  }

  absl::StatusOr<std::vector<TileSharding>> ReadShardings(const std::map<std::string, Mesh>& meshes) {
    std::vector<TileSharding> out;
    if (!s_.Eat("#sdy.sharding_per_value")) {
      if (!s_.Eat("#sdy.sharding")) return Bad();
      ASSIGN_OR_RETURN(TileSharding one, ReadSharding(meshes));
      out.push_back(std::move(one));
      return out;
    }
    if (!s_.Eat("<") || !s_.Eat("[")) return Bad();
    while (!s_.Eat("]")) {
      if (!out.empty() && !s_.Eat(",")) return Bad();
      ASSIGN_OR_RETURN(TileSharding one, ReadSharding(meshes));
      out.push_back(std::move(one));
    }
    return out;
  }

 private:
  absl::Status Bad() const { return InvalidArgument("the sharding '", text_, "' is not understood"); }
  std::string Name() { return s_.Peek() == '"' ? s_.Quoted().value_or("") : std::string(s_.Word("_.$-")); }

  // <["a"=2, "b"=4], device_ids=[...]>
  absl::StatusOr<Mesh> ReadMesh() {
    constexpr int64_t kMostDevices = 1 << 20;
    Mesh m;
    if (!s_.Eat("<") || !s_.Eat("[")) return Bad();
    while (!s_.Eat("]")) {
      if (!m.axes.empty() && !s_.Eat(",")) return Bad();
      const std::string name = Name();
      if (name.empty() || !s_.Eat("=")) return Bad();
      const auto size = s_.Integer();
      if (!size.ok() || *size < 1) return Bad();
      m.axes.push_back({name, *size, 1});
    }
    int64_t n = 1;
    for (size_t k = m.axes.size(); k-- > 0;) {
      m.axes[k].stride = n;
      if (n > kMostDevices / m.axes[k].size) return Bad();
      n *= m.axes[k].size;
    }
    m.devices.resize(static_cast<size_t>(n));
    std::iota(m.devices.begin(), m.devices.end(), 0);
    if (s_.Eat(",")) {
      if (!s_.Eat("device_ids") || !s_.Eat("=") || !s_.Eat("[")) return Bad();
      m.devices.clear();
      while (!s_.Eat("]")) {
        if (!m.devices.empty() && !s_.Eat(",")) return Bad();
        const auto d = s_.Integer();
        if (!d.ok()) return Bad();
        m.devices.push_back(*d);
      }
    }
    if (!s_.Eat(">") || static_cast<int64_t>(m.devices.size()) != n) return Bad();
    return m;
  }

  // "a", or "a":(2)2, the factor of 2 that comes after a factor of 2.
  absl::StatusOr<Part> ReadPart(const Mesh& mesh) {
    const std::string name = Name();
    const auto axis = std::find_if(mesh.axes.begin(), mesh.axes.end(), [&](const Axis& a) { return a.name == name; });
    if (axis == mesh.axes.end()) return Bad();
    if (!s_.Eat(":")) return Part{axis->size, axis->stride};
    if (!s_.Eat("(")) return Bad();
    const auto before = s_.Integer();
    if (!before.ok() || !s_.Eat(")")) return Bad();
    const auto size = s_.Integer();
    if (!size.ok() || *before < 1 || *size < 1 || axis->size % *before || axis->size / *before % *size) return Bad();
    return Part{*size, axis->stride * (axis->size / *before / *size)};
  }

  // <@mesh, [{"a"}, {"b", ?}p1], replicated={...}>
  absl::StatusOr<TileSharding> ReadSharding(const std::map<std::string, Mesh>& meshes) {
    if (!s_.Eat("<")) return Bad();
    Mesh mesh;
    if (s_.Eat("@")) {
      const auto known = meshes.find(Name());
      if (known == meshes.end())
        return InvalidArgument("the sharding '", text_, "' is over a mesh that is not defined");
      mesh = known->second;
    } else {
      if (!s_.Eat("mesh")) return Bad();
      ASSIGN_OR_RETURN(mesh, ReadMesh());
    }
    if (!s_.Eat(",") || !s_.Eat("[")) return Bad();
    std::vector<std::vector<Part>> dims;
    TileSharding out;
    while (!s_.Eat("]")) {
      if (!dims.empty() && !s_.Eat(",")) return Bad();
      if (!s_.Eat("{")) return Bad();
      dims.emplace_back();
      out.open.push_back(false);
      for (bool first = true; !s_.Eat("}"); first = false) {
        if (!first && !s_.Eat(",")) return Bad();
        if (s_.Eat("?")) {
          out.open.back() = true;
          continue;
        }
        ASSIGN_OR_RETURN(const Part part, ReadPart(mesh));
        dims.back().push_back(part);
      }
      if (s_.Peek() == 'p') s_.Word();  // a priority
    }
    if (!s_.Balanced(">").ok() || !s_.Eat(">")) return Bad();
    RETURN_IF_ERROR(Place(mesh, dims, &out));
    return out;
  }

  // Fills in tiles and devices.
  absl::Status Place(const Mesh& mesh, const std::vector<std::vector<Part>>& dims, TileSharding* out) const {
    const auto all = static_cast<int64_t>(mesh.devices.size());
    int64_t tiles = 1;
    for (const auto& parts : dims) {
      int64_t n = 1;
      for (const Part& p : parts) {
        if (p.size > all / tiles) return Bad();  // an axis cuts twice
        n *= p.size;
        tiles *= p.size;
      }
      out->tiles.push_back(n);
    }
    if (tiles == 1) {
      out->tiles.clear();
      return absl::OkStatus();
    }
    if (all % tiles) return Bad();
    out->kind = TileSharding::kTiled;
    std::vector<Ints> of_tile(static_cast<size_t>(tiles));
    for (int64_t place = 0; place < all; ++place) {
      int64_t tile = 0;
      for (const auto& parts : dims)
        for (const Part& p : parts) tile = tile * p.size + place / p.stride % p.size;
      of_tile[static_cast<size_t>(tile)].push_back(mesh.devices[static_cast<size_t>(place)]);
    }
    for (const Ints& devices : of_tile) {
      if (static_cast<int64_t>(devices.size()) != all / tiles) return Bad();  // an axis cuts twice
      out->devices.insert(out->devices.end(), devices.begin(), devices.end());
    }
    if (all > tiles) out->groups = {{TileSharding::kReplicated, all / tiles}};
    return absl::OkStatus();
  }

  const absl::string_view text_;
  Scanner s_;
};

}  // namespace

absl::StatusOr<std::vector<TileSharding>> ParseMeshShardings(const Module& m, absl::string_view text) {
  std::map<std::string, Mesh> meshes;
  for (const auto& [name, value] : m.extra_header) {
    if (name != "frontend_attributes") continue;
    if (const auto list = FrontendAttribute(value, "xla.sdy.meshes")) {
      ASSIGN_OR_RETURN(meshes, Reader(*list).ReadMeshes());
    }
  }
  return Reader(text).ReadShardings(meshes);
}

}  // namespace kiln
