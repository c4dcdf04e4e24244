// CHLO operations as HLO graphs: the special functions that HLO has no opcode for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/graph_builder.h"

namespace kiln {

// Builds `name` ("erfc", "lgamma", ...) over operands of one shape. Narrow floats are computed in f32.
// NotFound if `name` is not one of CHLO's elementwise functions.
absl::StatusOr<Expr> BuildChlo(absl::string_view name, const std::vector<Expr>& operands);

}  // namespace kiln
