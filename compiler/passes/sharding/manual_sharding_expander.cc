// Regions that are written for each partition, in a program whose other values every partition holds whole: a tile is
// sliced out where such a region begins, and tiles are gathered where it ends.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/hlo/sharding.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// Number of tile `n` along dimension `d`.
int64_t PlaceOfTile(const Sharding& s, int64_t n, size_t d) {
  for (size_t k = s.tiles.size() - 1; k > d; --k) n /= s.tiles[k];
  return n % s.tiles[d];
}

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

Expr TileOf(Expr whole, const Sharding& s, const Shape& tile) {
  if (s.kind != Sharding::kTiled || Product(s.tiles) == 1) return whole;
  Computation* c = whole.computation();
  Expr partition = ConvertTo(PrimitiveType::S32, c->Add(Opcode::PartitionId, Shape::Scalar(PrimitiveType::U32), {}));
  std::vector<Expr> starts;
  for (size_t d = 0; d < s.tiles.size(); ++d) {
    const int64_t extent = tile.dim(static_cast<int64_t>(d)), whole_extent = whole.shape().dim(static_cast<int64_t>(d));
    if (s.tiles[d] == 1) {
      starts.push_back(IntegerIn(c, PrimitiveType::S32, 0));
      continue;
    }
    if (extent * s.tiles[d] > whole_extent) {
      Ints rest = whole.shape().dims();
      rest[d] = extent * s.tiles[d] - whole_extent;
      whole =
          ConcatOf({whole, BroadcastTo(c->AddConstant(Literal::Of(whole.type(), 0)), rest)}, static_cast<int64_t>(d));
    }
    Literal table(Shape::Array(PrimitiveType::S32, {static_cast<int64_t>(s.devices.size())}));
    for (size_t k = 0; k < s.devices.size(); ++k) {
      const int64_t place = PlaceOfTile(s, static_cast<int64_t>(k) / s.copies, d);
      table.Set(s.devices[k], Literal::Int(PrimitiveType::S32, place * extent).Get(0));
    }
    starts.push_back(ReshapeTo(DynamicSliceOf(c->AddConstant(std::move(table)), {partition}, {1}), {}));
  }
  return DynamicSliceOf(whole, starts, tile.dims());
}

int64_t FreshChannel(const Module& m) {
  int64_t last = 0;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (!i->IsElementwise()) last = std::max(last, i->attrs().channel_id.value_or(0));
  return last + 1;
}

// Tiles gathered along one dimension after the other.
Expr WholeOf(Expr tile, const Sharding& s, const Shape& whole) {
  if (s.kind != Sharding::kTiled || Product(s.tiles) == 1) return tile;
  Computation* c = tile.computation();
  const Module& m = *c->module();
  for (size_t d = 0; d < s.tiles.size(); ++d) {
    if (s.tiles[d] == 1) continue;
    int64_t step = s.copies;  // between neighbours along the dimension
    for (size_t k = d + 1; k < s.tiles.size(); ++k) step *= s.tiles[k];
    std::vector<std::string> groups;
    for (int64_t r = 0; r < m.replica_count; ++r)
      for (int64_t k = 0; k < static_cast<int64_t>(s.devices.size()); ++k) {
        if (k / step % s.tiles[d] != 0) continue;
        Ints group;
        for (int64_t t = 0; t < s.tiles[d]; ++t) group.push_back(r * m.partition_count + s.devices[k + t * step]);
        groups.push_back(absl::StrCat("{", absl::StrJoin(group, ","), "}"));
      }
    Ints dims = tile.shape().dims();
    dims[d] *= s.tiles[d];
    Instruction* all = c->Add(Opcode::AllGather, Shape::Array(tile.type(), dims), {tile.get()});
    all->mutable_attrs().dimensions = Ints{static_cast<int64_t>(d)};
    all->mutable_attrs().replica_groups = attr::Raw(absl::StrCat("{", absl::StrJoin(groups, ","), "}"));
    all->mutable_attrs().use_global_device_ids = true;
    all->mutable_attrs().channel_id = FreshChannel(m);
    tile = all;
  }
  if (tile.shape().Compatible(whole)) return tile;
  return SliceOf(tile, Ints(whole.dims().size(), 0), whole.dims());
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
