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

bool Divides(const Sharding& s, const Ints& whole, const Ints& tile, int64_t partitions) {
  if (s.tiles.size() != whole.size() || whole.size() != tile.size()) return false;
  if (static_cast<int64_t>(s.devices.size()) != partitions) return false;
  for (size_t d = 0; d < whole.size(); ++d)
    if (tile[d] * s.tiles[d] != whole[d]) return false;
  return true;
}

Literal Cut(const Literal& whole, const Sharding& s, const Shape& tile, int64_t partition) {
  const Ints start = TileStart(s, tile.dims(), partition);
  const IndexSpace from(whole.shape().dims()), to(tile.dims());
  Literal out(tile);
  for (int64_t n = 0; n < out.size(); ++n) {
    Ints at = to.At(n);
    for (size_t d = 0; d < at.size(); ++d) at[d] += start[d];
    out.Set(n, whole.Get(from.Linear(at)));
  }
  return out;
}

void Place(const Literal& tile, const Sharding& s, int64_t partition, Literal* whole) {
  const Ints start = TileStart(s, tile.shape().dims(), partition);
  const IndexSpace from(tile.shape().dims()), to(whole->shape().dims());
  for (int64_t n = 0; n < tile.size(); ++n) {
    Ints at = from.At(n);
    for (size_t d = 0; d < at.size(); ++d) at[d] += start[d];
    whole->Set(to.Linear(at), tile.Get(n));
  }
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
