// Rows of an array, slices of its first dimension, at computed places.
#pragma once

#include "compiler/hlo/graph_builder.h"

namespace kiln {

// from[places[k]] for each k of `places`, of rank one; places beyond the ends are moved to them.
Expr GatherRows(Expr from, Expr places);
// Rows of `to` at `places` combined with those of `updates`, in order; those beyond the ends are left out.
Expr ScatterRows(Expr to, Expr places, Expr updates, Computation* combine);

}  // namespace kiln
