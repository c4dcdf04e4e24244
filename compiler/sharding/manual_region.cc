#include "compiler/sharding/manual_region.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/annotation.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/hlo/sharding.h"

namespace kiln {
namespace {

using Tensor = OpRule::Tensor;

TileSharding AllAxes() {
  TileSharding out;
  out.kind = TileSharding::kManual;
  return out;
}

// "#sdy<manual_axes{"a", "b"}>" over the mesh that the boundary's shardings name.
absl::StatusOr<TileSharding> ShardyRegion(const Instruction& i) {
  if (!i.attrs().frontend_attributes) return AllAxes();
  const std::string& text = i.attrs().frontend_attributes->text;
  const bool inwards = BoundaryOf(i) == Boundary::kInwards;
  const auto axes = FrontendAttribute(text, "xla.sdy.manual_axes");
  const auto over = FrontendAttribute(text, inwards ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings");
  const size_t open = axes ? axes->find('{') : std::string::npos, mesh = over ? over->find("<@") : std::string::npos;
  if (open == std::string::npos || mesh == std::string::npos) return AllAxes();
  const std::string list = axes->substr(open, axes->find('}', open) + 1 - open);
  const std::string name = over->substr(mesh, over->find(',', mesh) - mesh);
  auto s = ParseMeshShardings(*i.parent()->module(), absl::StrCat("#sdy.sharding", name, ", [", list, "]>"));
  if (!s.ok()) return ErrorAt(&i, s.status().message());
  TileSharding out = (*s)[0];
  if (!out.IsTiled()) return out;
  out.groups.insert(out.groups.begin(), {TileSharding::kManual, out.tiles[0]});
  out.tiles.clear();
  out.open.clear();
  return out;
}

bool MeetsWithin(const Instruction& i, const DeviceMesh& mesh, AxisMask axes) {
  const Module& m = *i.parent()->module();
  std::vector<Ints> groups;
  if (i.Is(Opcode::CollectivePermute)) {
    const auto pairs = DevicePairs(i, m.replica_count, m.partition_count);
    if (!pairs.ok()) return false;
    for (const auto& [source, target] : *pairs) groups.push_back({source, target});
  } else {
    auto of = DeviceGroups(i, m.replica_count, m.partition_count);
    if (!of.ok()) return false;
    groups = *std::move(of);
  }
  for (const Ints& group : groups)
    for (int64_t device : group)
      for (int a = 0; a < mesh.axis_count(); ++a)
        if (!(axes >> a & 1) && mesh.Digit(device % mesh.devices(), a) != mesh.Digit(group[0] % mesh.devices(), a))
          return false;
  return true;
}

}  // namespace

absl::StatusOr<TileSharding> RegionSharding(const Instruction& i) {
  if (i.attrs().custom_call_target->text.rfind("xla.sdy.", 0) == 0) return ShardyRegion(i);
  ASSIGN_OR_RETURN(const auto inside, WrittenShardings(BoundaryOf(i) == Boundary::kInwards ? i : *i.operand(0)));
  const auto manual = [](const TileSharding& s) {
    return s.IsTiled() && std::any_of(s.groups.begin(), s.groups.end(),
                                      [](const auto& g) { return g.first == TileSharding::kManual; });
  };
  return inside.size() == 1 && manual(inside[0]) ? inside[0] : AllAxes();
}

OpRule BoundaryRule(const Ints& whole, const Ints& tile) {
  OpRule r;
  Tensor outside, inside;
  for (size_t d = 0; d < whole.size(); ++d) {
    outside.emplace_back();
    if (whole[d] > tile[d]) outside[d].push_back(r.Add(whole[d] / tile[d]));
    outside[d].push_back(r.Add(tile[d]));
    inside.push_back({outside[d].back()});
  }
  r.operands = {outside};
  r.results = {inside};
  return r;
}

std::optional<OpRule> WrittenCollectiveRule(const Instruction& i, const DeviceMesh& mesh, AxisMask axes) {
  OpRule r;
  std::optional<int64_t> whole;  // a dimension along which devices take or give pieces
  switch (i.opcode()) {
    case Opcode::AllReduce:
    case Opcode::CollectivePermute:
    case Opcode::CollectiveBroadcast:
      break;
    case Opcode::AllGather:
    case Opcode::ReduceScatter:
      whole = (*i.attrs().dimensions)[0];
      break;
    case Opcode::AllToAll:
      if (!i.shape().IsArray()) return std::nullopt;
      whole = (*i.attrs().dimensions)[0];
      break;
    default:
      return std::nullopt;
  }
  std::vector<Shape> results;
  ForEachLeaf(i.shape(), [&](const ShapeIndex&, const Shape& s) { results.push_back(s); });
  if (static_cast<int64_t>(results.size()) != i.operand_count() || !MeetsWithin(i, mesh, axes)) return std::nullopt;
  for (const Shape& s : results) {
    Tensor t;
    for (int64_t d = 0; d < s.rank(); ++d)
      t.push_back(d == whole ? std::vector<int>() : std::vector<int>{r.Add(s.dim(d))});
    r.operands.push_back(t);
    r.results.push_back(t);
  }
  return r;
}

}  // namespace kiln
