// Regions that are written for each partition, in a program whose other values every partition holds whole: a tile is
// sliced out where such a region begins, and tiles are gathered where it ends.
#include <algorithm>

#include "compiler/hlo/sharding.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/sharding/tile_boundary.h"

namespace kiln {
namespace {

absl::Status Check(const Instruction* i, const Sharding& s, const Shape& whole, const Shape& tile) {
  if (s.kind == Sharding::kOther) return ErrorAt(i, "has a sharding that does not cut an array into tiles");
  if (s.kind != Sharding::kTiled) {
    if (whole.Compatible(tile)) return absl::OkStatus();
    return ErrorAt(i, absl::StrCat("a tile of ", tile.ToString(), " cannot be one of ", whole.ToString(),
                                   ", which is not sharded"));
  }
  const int64_t partitions = i->parent()->module()->partition_count;
  if (!tile.IsArray() || tile.type() != whole.type() || tile.rank() != whole.rank() ||
      tile.rank() != static_cast<int64_t>(s.tiles.size()))
    return ErrorAt(i, "has a sharding of another rank than its arrays");
  for (int64_t d = 0; d < tile.rank(); ++d)
    if (tile.dim(d) != (whole.dim(d) + s.tiles[d] - 1) / s.tiles[d])
      return ErrorAt(i, absl::StrCat("dimension ", d, " of ", whole.ToString(), " in ", s.tiles[d],
                                     " tiles does not give ", tile.ToString()));
  if (static_cast<int64_t>(s.devices.size()) != partitions ||
      *std::max_element(s.devices.begin(), s.devices.end()) >= partitions)
    return ErrorAt(
        i, absl::StrCat("is sharded over ", s.devices.size(), " devices, the module has ", partitions, " partitions"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> ManualShardingExpander(Module& m, PassContext& ctx) {
  absl::Status failed;
  auto changed = ExpandEach(
      m, ctx,
      [&](Instruction* i) {
        const auto boundary = ManualBoundaryOf(*i);
        if (!boundary.ok() && failed.ok()) failed = boundary.status();
        return boundary.ok() && boundary->has_value();
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        ASSIGN_OR_RETURN(const std::optional<ManualBoundary> boundary, ManualBoundaryOf(*i));
        i->mutable_attrs().sharding.reset();  // it says what the boundary does, and nothing of the value
        std::vector<Expr> parts;
        for (int64_t k = 0; k < i->operand_count(); ++k) {
          const Shape& to = i->shape().IsTuple() ? i->shape().tuple()[static_cast<size_t>(k)] : i->shape();
          const Shape& from = i->operand(k)->shape();
          const Sharding& s = boundary->shardings[static_cast<size_t>(k)];
          RETURN_IF_ERROR(boundary->inwards ? Check(i, s, from, to) : Check(i, s, to, from));
          parts.push_back(boundary->inwards ? TileOf(i->operand(k), s, to) : WholeOf(i->operand(k), s, to));
        }
        if (!i->shape().IsTuple()) return parts[0].get();
        std::vector<Instruction*> values;
        for (const Expr& e : parts) values.push_back(e.get());
        return i->parent()->Add(Opcode::Tuple, i->shape(), values);
      });
  RETURN_IF_ERROR(failed);
  return changed;
}

}  // namespace kiln
