// Running sums, products, maxima ... along one dimension.
#pragma once

#include "compiler/hlo/graph_builder.h"

namespace kiln {

// Elements of a block that is cumulated as one window.
inline constexpr int64_t kCumulativeBlock = 16;

// The dimension that a reduce-window cumulates from its start, if it does so over more than `longest` and nothing else;
// else -1.
int64_t CumulativeDim(const Instruction* reduce_window, int64_t longest = kCumulativeBlock);

// y[k] = f(init, x[0], ..., x[k]) along `dim`, by blocks of `block`; `f` must be associative.
Expr Cumulate(Expr x, Expr init, Computation* f, int64_t dim, int64_t block = kCumulativeBlock);

}  // namespace kiln
