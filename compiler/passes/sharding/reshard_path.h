// The exchanges that bring an array from one tiling to another and move the fewest bytes.
//
// What: a path of slices, all-to-alls, permutations and gathers between tilings that cut the array evenly.
// Why: which exchange comes first decides how much the others move: a permutation of small parts saves the gather of
//   what is sliced again, a gather of one dimension can make room for an all-to-all.
// Guarantees: the least of all paths of moves that lead towards the target; equal inputs give equal paths.
// Cost: an exchange counts the larger of what a device gives and gets, and kPathExchange.
#pragma once

#include <optional>

#include "compiler/sharding/device_mesh.h"

namespace kiln {

// An exchange of nothing, in bytes of one: many exchanges travel together.
constexpr int64_t kPathExchange = 256;

struct ReshardMove {
  enum Kind { kSlice, kPermute, kExchange, kGather };
  Kind kind;
  size_t from = 0, to = 0;  // dimensions: of kExchange both, of kGather `from`
  Axes axes;                // those that leave `from`
  Tiling after;
};

struct ReshardPath {
  std::vector<ReshardMove> moves;
  int64_t cost = 0;
};

// Nothing where a tiling is uneven, or a path is too far to look for.
std::optional<ReshardPath> CheapestPath(const DeviceMesh& mesh, const Shape& whole, const Tiling& from,
                                        const Tiling& target);

}  // namespace kiln
