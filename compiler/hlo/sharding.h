// How arrays are cut into tiles over the partitions of a program, and where code written for one partition begins.
//
// What: the text of a sharding attribute, and Shardy's shardings over the axes of a mesh, as tiles and devices; the
//   custom calls between whole arrays and the tiles that a region written for each partition works with.
// Guarantees: a tiled sharding names no device twice. Bad text is an error that quotes it; nothing else fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

struct Sharding {
  enum Kind { kReplicated, kManual, kTiled, kOther };  // other: on one device, or not known
  Kind kind = kReplicated;
  Ints tiles;          // along each dimension of the array
  int64_t copies = 1;  // devices that hold the same tile
  Ints devices;        // tile by tile in row-major order, the copies of one together
};

// "{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "{devices=[2,1]1,0}", "{replicated}", "{manual}",
// "{maximal device=0}". Not a tuple.
absl::StatusOr<Sharding> ParseSharding(absl::string_view text);

// A value of frontend_attributes ("{key="value",other={...}}"), unquoted; absent if there is no such key.
std::optional<std::string> FrontendAttribute(absl::string_view attributes, absl::string_view key);

// The boundary of a region that is written for each partition: SPMDFullToShardShape and SPMDShardToFullShape,
// xla.sdy.GlobalToLocalShape and xla.sdy.LocalToGlobalShape.
struct ManualBoundary {
  bool inwards = false;             // from whole arrays to tiles
  std::vector<Sharding> shardings;  // of the whole arrays, one for each operand
};
// Absent for every other instruction.
absl::StatusOr<std::optional<ManualBoundary>> ManualBoundaryOf(const Instruction& i);

}  // namespace kiln
