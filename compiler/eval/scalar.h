// Scalar semantics of the elementwise operations.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"
#include "compiler/hlo/literal.h"

namespace kiln {

// Result of elementwise `i` on operand elements of `types`; not yet rounded to the result type.
absl::StatusOr<Element> EvaluateScalar(const Instruction& i, const Element* operands);
// `v` of type `from` converted to type `to` (saturating float to integer, NaN to 0, bool as != 0).
Element ConvertElement(const Element& v, PrimitiveType from, PrimitiveType to);
// Three-way order of two elements; `total` orders NaN and signed zeros.
int TotalOrder(const Element& a, const Element& b, PrimitiveType t);

}  // namespace kiln
