// The sharding of one array as it is written: a kind, and for tiles the devices that hold them.
//
// What: HLO's text of shardings (tiles listed or as an iota, replication on the last tile dimension, subgroups, one
//   device, manual, tuples), and Shardy's over the axes of a mesh, in one form.
// Guarantees: a tiled sharding names no device twice and as many as it has tiles. Bad text is an error that quotes it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"
#include "compiler/hlo/sharding.h"

namespace kiln {

struct TileSharding {
  enum Kind { kReplicated, kManual, kUnreduced, kUnknown, kMaximal, kTiled };
  Kind kind = kReplicated;
  Ints tiles;                                    // along each dimension of the array
  std::vector<std::pair<Kind, int64_t>> groups;  // trailing tile dimensions: what devices that differ there share
  Ints devices;                                  // in row-major order of `tiles`, then of `groups`
  // Dimensions that a compiler may cut further; empty: none.
  std::vector<bool> open;

  bool IsTiled() const { return kind == kTiled; }
  // Along data dimension or group `d`, of the tile at place `n` of `devices`.
  int64_t CoordinateOf(int64_t n, size_t d) const;
};

// The shardings of the arrays of a value, in order; one for all of them where the text is of no tuple.
absl::StatusOr<std::vector<TileSharding>> ParseTileShardings(absl::string_view text);

// "#sdy.sharding<@mesh, [...]>" or "#sdy.sharding_per_value<[...]>" over the meshes that the module's header lists.
absl::StatusOr<std::vector<TileSharding>> ParseMeshShardings(const Module& m, absl::string_view text);

// What a frontend attribute "xla.sdy.sharding" says, or else the sharding; empty if there is neither.
absl::StatusOr<std::vector<TileSharding>> WrittenShardings(const Instruction& i);

// The form of a manual boundary (compiler/hlo/sharding.h).
TileSharding FromTable(const Sharding& table);
// The other way: subgroups count as copies.
Sharding ToTable(const TileSharding& s);

}  // namespace kiln
