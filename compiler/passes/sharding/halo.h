// What one device's part of an operation takes of an array that is cut: the stretch, put together from neighbours'
// parts.
//
// What: permutations that bring the rows of each neighbour that any device lacks, then a join and, where stretches do
// not
//   move with the parts, a slice.
// Guarantees: elements past the ends of the array are `fill`, if it is given, and any value otherwise.
// Cost: never more bytes than to gather the dimension, which is done where permutations would move as much.
#pragma once

#include "compiler/passes/sharding/resharder.h"
#include "compiler/sharding/window_rule.h"

namespace kiln {

// For the device's place on `axes`, which cut dimension `d`, unless it is whole. `around`: what lies past the end is
// the other end. The value has `s.count` elements along `d`.
Expr FetchStretch(const Part& p, size_t d, const Axes& axes, const Stretch& s, const std::optional<Expr>& fill,
                  bool around, Resharder* reshard);

}  // namespace kiln
