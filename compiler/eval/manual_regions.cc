// Evaluator: where code written for parts begins and ends (shard_map). Devices compute whole arrays outside, each the
// same ones; a device that enters takes its tile, and those that leave exchange their tiles.
#include <algorithm>

#include "compiler/eval/families.h"
#include "compiler/eval/world.h"
#include "compiler/hlo/sharding.h"

namespace kiln {
namespace {

// Tile by tile, the copies of one together.
int64_t PositionOf(const Sharding& s, int64_t partition) {
  return std::find(s.devices.begin(), s.devices.end(), partition) - s.devices.begin();
}

// Where the tile of a device begins.
Ints TileStart(const Sharding& s, const Ints& tile, int64_t partition) {
  Ints start = IndexSpace(s.tiles).At(PositionOf(s, partition) / s.copies);
  for (size_t d = 0; d < tile.size(); ++d) start[d] *= tile[d];
  return start;
}

// Whether all tiles are whole; that ranks agree is checked where boundaries are read.
bool Divides(const Sharding& s, const Ints& whole, const Ints& tile, int64_t partitions) {
  if (static_cast<int64_t>(s.devices.size()) != partitions) return false;
  for (size_t d = 0; d < whole.size(); ++d)
    if (tile[d] * s.tiles[d] != whole[d]) return false;
  return true;
}

// Calls `f` with the place of each element in the tile of a device, and in the whole array.
template <typename F>
void ForEachOfTile(const Sharding& s, const Ints& tile, const Ints& whole, int64_t partition, const F& f) {
  const Ints start = TileStart(s, tile, partition);
  const IndexSpace in_tile(tile), in_whole(whole);
  const int64_t count = Shape::Array(PrimitiveType::Pred, tile).ElementCount();
  for (int64_t n = 0; n < count; ++n) {
    Ints at = in_tile.At(n);
    for (size_t d = 0; d < at.size(); ++d) at[d] += start[d];
    f(n, in_whole.Linear(at));
  }
}

Literal Cut(const Literal& whole, const Sharding& s, const Shape& tile, int64_t partition) {
  Literal out(tile);
  ForEachOfTile(s, tile.dims(), whole.shape().dims(), partition,
                [&](int64_t in_tile, int64_t in_whole) { out.Set(in_tile, whole.Get(in_whole)); });
  return out;
}

void Place(const Literal& tile, const Sharding& s, int64_t partition, Literal* whole) {
  ForEachOfTile(s, tile.shape().dims(), whole->shape().dims(), partition,
                [&](int64_t in_tile, int64_t in_whole) { whole->Set(in_whole, tile.Get(in_tile)); });
}

absl::StatusOr<Literal> CrossBoundary(const Instruction& i, const Literal& x, const Sharding& s, bool inwards,
                                      const Shape& shape) {
  if (s.kind == Sharding::kReplicated || s.kind == Sharding::kManual) return x;
  const Participant* const self = Participant::Current();
  if (!self || s.kind != Sharding::kTiled)
    return ErrorAt(&i, "only all devices together can evaluate code that is written for parts",
                   absl::StatusCode::kUnimplemented);
  const int64_t partitions = self->world->partitions, partition = self->device % partitions;
  if (!Divides(s, inwards ? x.shape().dims() : shape.dims(), inwards ? shape.dims() : x.shape().dims(), partitions))
    return ErrorAt(&i, "its sharding does not make tiles of one shape of the whole array");
  if (inwards) return Cut(x, s, shape, partition);
  Ints replica;
  for (int64_t p = 0; p < partitions; ++p) replica.push_back(self->device - partition + p);
  ASSIGN_OR_RETURN(const std::vector<Literal> tiles, self->world->Exchange(self->device, replica, x));
  Literal out(shape);
  // Copies of a tile are equal, or each set of them is an array of its own.
  const int64_t copy = PositionOf(s, partition) % s.copies;
  for (int64_t p = 0; p < partitions; ++p)
    if (PositionOf(s, p) % s.copies == copy) Place(tiles[p], s, p, &out);
  return out;
}

}  // namespace

absl::StatusOr<Literal> EvalManualBoundary(const Instruction& i, const Shape& shape,
                                           const std::vector<const Literal*>& x) {
  ASSIGN_OR_RETURN(const std::optional<ManualBoundary> boundary, ManualBoundaryOf(i));
  if (!boundary) return absl::NotFoundError("");
  std::vector<Literal> out;
  for (size_t k = 0; k < x.size(); ++k) {
    const Shape& whole_or_tile = shape.IsTuple() ? shape.tuple()[k] : shape;
    ASSIGN_OR_RETURN(Literal l, CrossBoundary(i, *x[k], boundary->shardings[k], boundary->inwards, whole_or_tile));
    out.push_back(std::move(l));
  }
  return shape.IsTuple() ? Literal::Tuple(std::move(out)) : std::move(out[0]);
}

}  // namespace kiln
