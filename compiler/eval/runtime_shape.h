// The extents that values have at run time.
//
// What: in the evaluator a value of a dynamic dimension is a literal of the size it has; there is no padding. What an
//   operation means on it is what it means on arrays of those extents, so all that dynamic dimensions ask for is the
//   result's extents (XLA's DynamicDimensionInference) and, where an operation counts in bounds, the operand's shape.
// Guarantees: without anything dynamic the result is the instruction's shape. Sizes that contradict each other are an
//   InvalidArgument naming the operation.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// The shape of the result of `i` on `operands`. Operations that hand values on (tuples, loops, calls, ...) answer the
// instruction's own shape.
absl::StatusOr<Shape> RuntimeShape(const Instruction& i, const std::vector<const Literal*>& operands);

}  // namespace kiln
