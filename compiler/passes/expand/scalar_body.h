// Scalar functions applied to arrays of one shape.
#pragma once

#include <vector>

#include "compiler/hlo/graph_builder.h"

namespace kiln {

// Whether `f` is made of scalar elementwise operations, constants and a result (or a tuple of results) alone.
bool IsScalarBody(const Computation* f);

// What `f` gives for each element of `arguments`, which all have one shape and stand for its parameters in order.
std::vector<Expr> ApplyScalarBody(const Computation* f, const std::vector<Expr>& arguments);

}  // namespace kiln
