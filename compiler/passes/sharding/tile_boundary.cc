#include "compiler/passes/sharding/tile_boundary.h"

#include "absl/strings/str_join.h"

namespace kiln {
namespace {

// Number of tile `n` along dimension `d`.
int64_t PlaceOfTile(const Sharding& s, int64_t n, size_t d) {
  for (size_t k = s.tiles.size() - 1; k > d; --k) n /= s.tiles[k];
  return n % s.tiles[d];
}

}  // namespace

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

}  // namespace kiln
