// Regions of code that is written for each device along some axes of the mesh, and cut along the others as any code is.
//
// What: the axes of a region, how a dimension's cuts outside correspond to those inside, and which written collectives
//   are cut with their operands.
// Why: a shard_map over one axis of a mesh leaves the other axes to the compiler.
// Guarantees: a region whose axes are not understood is written for all of them, so that nothing in it is cut.
#pragma once

#include "compiler/sharding/op_rule.h"

namespace kiln {

// The axes that the region on the inner side of a boundary (compiler/hlo/sharding.h) is written for, which are the
// manual ones of the result.
absl::StatusOr<TileSharding> RegionSharding(const Instruction& boundary);

// Between an array outside, the first operand, and the tile of it that the region takes or gives, the result: a
// dimension is cut by the region's axes, then by those that cut the tile.
OpRule BoundaryRule(const Ints& whole, const Ints& tile);

// The rule of a collective that a region wrote for `axes`. Absent where devices meet that differ in other axes.
std::optional<OpRule> WrittenCollectiveRule(const Instruction& i, const DeviceMesh& mesh, AxisMask axes);

}  // namespace kiln
