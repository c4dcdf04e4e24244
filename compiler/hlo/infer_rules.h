// The families of shape inference (infer.h); for infer_*.cc alone.
#pragma once

#include <algorithm>

#include "compiler/hlo/infer.h"

#define REQUIRE(cond, ...)                            \
  do {                                                \
    if (!(cond)) return InvalidArgument(__VA_ARGS__); \
  } while (0)

namespace kiln {

// A function for each family of operations. `given` is the shape that the text states, or null where it leaves the
// shape out: some results depend on it (the element type that a product is to have, whether one array stands alone or
// in a tuple). Source: XLA's shape inference.
namespace infer {

using Given = const Shape*;

// Each in range and named once; ascending if `sorted`.
absl::Status CheckDims(const Ints& dims, int64_t rank, absl::string_view what, bool sorted = false);

inline Ints ValueOr(const std::optional<Ints>& v) { return v.value_or(Ints()); }

inline bool In(const Ints& list, int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); }

// Equal, or one of them not known (`?`).
inline bool SameExtent(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }
// Of every dimension, dynamic ones fitting any.
bool SameExtents(const Shape& a, const Shape& b);

// The same type, or two float types: mixed precision.
inline bool SameTypeButPrecision(PrimitiveType a, PrimitiveType b) { return a == b || (IsFloat(a) && IsFloat(b)); }
inline PrimitiveType WiderFloat(PrimitiveType a, PrimitiveType b) { return InfoOf(a).bits >= InfoOf(b).bits ? a : b; }

// One array, or a tuple of them: a result with one part is a tuple only where the text says so.
Shape OneOrTuple(std::vector<Shape> parts, Given given);

// A reduction's function: scalars for each of n arrays and n accumulators, and as many results.
absl::Status CheckReducer(const Instruction& i, const Computation* c, size_t n);
// Values of type `value` reach the reducer's parameter k.
absl::Status CheckReducerOperand(const Computation* c, size_t k, PrimitiveType value, absl::string_view what);

absl::StatusOr<Shape> Elementwise(const Instruction& i, Given given);
absl::StatusOr<Shape> Dot(const Instruction& i, Given given);
absl::StatusOr<Shape> RaggedDot(const Instruction& i, Given given);
absl::StatusOr<Shape> Convolution(const Instruction& i, Given given);
absl::StatusOr<Shape> Reduce(const Instruction& i, Given given);
absl::StatusOr<Shape> ReduceWindow(const Instruction& i, Given given);
absl::StatusOr<Shape> SelectAndScatter(const Instruction& i);
absl::StatusOr<Shape> Map(const Instruction& i);
absl::StatusOr<Shape> Sort(const Instruction& i, Given given);
absl::StatusOr<Shape> Scan(const Instruction& i);
absl::StatusOr<Shape> Gather(const Instruction& i);
absl::StatusOr<Shape> Scatter(const Instruction& i, Given given);
absl::StatusOr<Shape> BatchNorm(const Instruction& i);
absl::StatusOr<Shape> Fft(const Instruction& i);

absl::StatusOr<Shape> Call(const Instruction& i, const Computation* c, absl::string_view what);
absl::StatusOr<Shape> While(const Instruction& i);
absl::StatusOr<Shape> Conditional(const Instruction& i);

// Asynchronous and communicating operations.
absl::StatusOr<Shape> Asynchronous(const Instruction& i, Given given);
absl::StatusOr<Shape> Collective(const Instruction& i, Given given);
// Sends, receives, infeeds and outfeeds.
absl::StatusOr<Shape> Transfer(const Instruction& i, Given given);

}  // namespace infer
}  // namespace kiln
