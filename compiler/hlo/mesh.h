// Shardy's meshes of devices, and the shardings over their axes: the one reader of their text.
//
// Guarantees: a mesh that was read has at most kMostMeshDevices devices and one for each place; nothing fails on bad
// text
//   but by saying so.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/scanner.h"
#include "compiler/hlo/shape.h"

namespace kiln {

inline constexpr int64_t kMostMeshDevices = 1 << 20;

struct MeshAxis {
  std::string name;
  int64_t size, stride;  // a device's number along it: its place in the mesh / stride % size
};

struct Mesh {
  std::vector<MeshAxis> axes;
  Ints devices;  // in row-major order of the axes
};

using Meshes = std::map<std::string, Mesh>;

// <["a"=2, "b"=4], device_ids=[...]>; absent if that is not what comes next.
std::optional<Mesh> ReadMesh(Scanner& s);
// The same as text; device_ids if they are not 0, 1, 2, ...
std::string MeshText(const Mesh& mesh);
// {mesh = #sdy.mesh<["d"=8]>, other = ...}: xla.sdy.meshes of a module's frontend attributes.
std::optional<Meshes> ReadMeshes(absl::string_view text);

// A part of an axis along which a dimension is cut.
struct AxisPart {
  std::string axis;
  int64_t size, stride;  // as an axis has them
};

struct MeshSharding {
  Mesh mesh;
  std::vector<std::vector<AxisPart>> dims;
  std::vector<bool> open;  // dimensions that the compiler may cut further
};

// <@mesh, [{"a"}, {"b":(2)2, ?}p1], replicated={...}>. Errors complete "the sharding '...' ".
absl::StatusOr<MeshSharding> ReadMeshSharding(Scanner& s, const Meshes& meshes);

// The devices of each tile, tiles in row-major order; absent if an axis cuts twice. The same number for each.
std::optional<std::vector<Ints>> DevicesOfTiles(const Mesh& mesh, const std::vector<std::vector<AxisPart>>& dims);

}  // namespace kiln
