// The families of shape inference (infer.h); for infer_*.cc alone.
#pragma once

#include <algorithm>

#include "compiler/hlo/infer.h"

#define REQUIRE(cond, ...)                            \
  do {                                                \
    if (!(cond)) return InvalidArgument(__VA_ARGS__); \
  } while (0)

namespace kiln {

// A rule for each operation or family of them. `given` is the shape that the text states, or null where it leaves the
// shape out: some results depend on it (the element type that a product is to have, whether one array stands alone or
// in a tuple). Source: XLA's shape inference.
namespace infer {

using Given = const Shape*;
using Rule = absl::StatusOr<Shape>(const Instruction& i, Given given);

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

// What a call of `c` with the operands of `i` returns; `what` names it in messages.
absl::StatusOr<Shape> ResultOfCall(const Instruction& i, const Computation* c, absl::string_view what);

Rule Elementwise;
// Arrays in another order, size or form.
Rule Broadcast, Reshape, DynamicReshape, BitcastConvert, Bitcast, Transpose, Reverse, Slice, Pad, Concatenate, Iota;
Rule GetDimensionSize, SetDimensionSize;
// Parts of arrays, at places that are values.
Rule DynamicSlice, DynamicUpdateSlice, Gather, Scatter;
Rule Dot, RaggedDot, Convolution;
Rule Reduce, ReduceWindow, SelectAndScatter, Map, Sort, TopK, Scan;
Rule Cholesky, TriangularSolve, Fft, BatchNorm;
Rule Rng, RngBitGenerator, RngGetAndUpdateState;
// Control flow, tuples, and what only orders.
Rule Call, Fusion, While, Conditional, Tuple, GetTupleElement, AddDependency, AfterAll, SameAsOperand;
// Asynchronous and communicating operations; Transfer: sends, receives, infeeds and outfeeds.
Rule Asynchronous, Collective, Transfer, DeviceId;

}  // namespace infer
}  // namespace kiln
