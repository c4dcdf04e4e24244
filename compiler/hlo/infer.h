// Shape inference: the shape an instruction must have, from its operands and attributes.
//
// Guarantees: a wrong combination is an InvalidArgument that names what differs; never reads beyond an operand's rank.
// Opcodes whose shape the operands do not determine (parameter, constant, custom-call, ...) answer their own shape.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

absl::StatusOr<Shape> InferShape(const Instruction& instruction);
// Of an instruction that was written without a shape; the result has no layouts. An error where operands and attributes
// leave the shape open.
absl::StatusOr<Shape> InferOmittedShape(const Instruction& instruction);

// Whether the window, its padding and the padded input have at most as many places as an array may have elements, holes
// of dilations included: below that, sums of them fit. Strides and dilations are positive.
bool WindowFits(int64_t input, const WindowDim& window);
// Output extent of one window dimension over an input extent; of a window that fits.
int64_t WindowedExtent(int64_t input, const WindowDim& window);

// A dimension without a bound (`?`) is in it.
bool HasUnbounded(const Shape& shape);
// Of one element, as bitcasts count: a truth value is a byte.
int64_t BitsInMemory(PrimitiveType type);

}  // namespace kiln
