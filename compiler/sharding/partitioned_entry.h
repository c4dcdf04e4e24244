// What the arguments and results of a partitioned program are parts of.
//
// What: the whole shape and the sharding of each array leaf, kept in the module's header, and the tiles of arrays.
// Guarantees: cutting and joining are inverse; what lies past the end of an uneven array is zero in its tiles.
#pragma once

#include <optional>
#include <vector>

#include "compiler/hlo/instruction.h"
#include "compiler/hlo/sharding.h"

namespace kiln {

struct PartitionedLeaf {
  Shape whole;
  Sharding sharding;
};
struct PartitionedEntry {
  std::vector<PartitionedLeaf> arguments, results;  // leaves, in order; tokens are there too
};

// Writes it into the header, where it makes the module one that is partitioned already; the entry's layout and aliases
// follow the parts' shapes.
void RecordPartitionedEntry(const PartitionedEntry& entry, Module* m);
// Absent for a module that is not partitioned.
std::optional<PartitionedEntry> ReadPartitionedEntry(const Module& m);

// An error with its place if a header that was read says what the entry's arrays cannot be.
absl::Status CheckPartitionedEntry(const Module& m);

// The part of a whole array that `device` holds, and the array that parts of each device make.
Literal TileOfLiteral(const Literal& whole, const Sharding& s, const Shape& tile, int64_t device);
Literal JoinTiles(const std::vector<Literal>& tiles, const PartitionedLeaf& leaf);

}  // namespace kiln
