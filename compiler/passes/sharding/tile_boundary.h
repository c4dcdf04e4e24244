// Whole arrays and tiles of them, for any written sharding: also those that no axes of a mesh express, and uneven ones.
#pragma once

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/sharding.h"

namespace kiln {

// The device's tile, of shape `tile`; padded with zeros past the end of the array.
Expr TileOf(Expr whole, const Sharding& s, const Shape& tile);
// Tiles gathered along one dimension after the other, without what is past the end.
Expr WholeOf(Expr tile, const Sharding& s, const Shape& whole);
// Larger than any that the module has.
int64_t FreshChannel(const Module& m);

}  // namespace kiln
