// The reference evaluator: what every operation means, slow and obvious.
//
// What: runs a module on literals. Arithmetic is done wide (64-bit integers, double, complex double) and rounded to the
//   element type after every operation, so f32 results of + - * / sqrt are correctly rounded and transcendental ones
//   are within one unit.
// Dynamic dimensions: a literal has the extents that the value has, not its bounds; sizes travel with values because
// they
//   are part of them. Arguments and results are such literals too.
// Guarantees: pinned semantics of pipelines.md section 6 (saturating conversions, total shifts, clamped indices, ...).
// Every value has the element type of its instruction, and no extent above it; anything else is Internal.
// Fails with Unimplemented naming the op where an operation has no meaning on one device.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"
#include "compiler/hlo/literal.h"

namespace kiln {

absl::StatusOr<Literal> Evaluate(const Module& module, const std::vector<Literal>& arguments);
absl::StatusOr<Literal> EvaluateComputation(const Computation& computation, const std::vector<Literal>& arguments);
// One instruction over operand values.
absl::StatusOr<Literal> EvaluateInstruction(const Instruction& instruction,
                                            const std::vector<const Literal*>& operands);

}  // namespace kiln
