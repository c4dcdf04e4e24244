// A sort along a dimension that is cut, of which each device keeps its part, or of which few elements are wanted.
//
// What: two devices exchange their sorted parts, and each keeps its half of both. More sort by columns (Leighton 1985):
//   each sorts its part, they exchange blocks as in a transposition and back, with a sort behind each, and neighbours
//   sort the halves that meet. Among equals a number decides that counts elements, where these can be told apart.
// Guarantees: the order of a stable sort of the whole.
// Cost: a device moves its part once, or three times, and has room for two parts. Taken where that moves no more than
// to
//   gather the whole, and no other dimension could be cut instead.
#pragma once

#include "compiler/passes/sharding/resharder.h"

namespace kiln {

// Nothing where it does not pay, or the comparator's order is not known.
std::optional<std::vector<Part>> SortByExchange(const Instruction& op, const std::vector<Part>& operands,
                                                const std::vector<Tiling>& wanted, Resharder* reshard);

}  // namespace kiln
