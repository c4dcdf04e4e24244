// Runs a program on the values that its text means, on any backend and any number of devices.
//
// What: arrays of dynamic dimensions are literals of the size that they have; how a compiled program takes sizes
// (arrays
//   of the bound, sizes as arguments and results of their own) stays inside. What lies past a size is given to compiled
//   programs as garbage, so that a program that reads it shows.
// Guarantees: every result has the type that the program states, and no dynamic dimension is above its bound.
#pragma once

#include <vector>

#include "aot/tools/runner.h"

namespace kiln {

// The array leaves of the arguments of one device, or of its results.
using Values = std::vector<Literal>;

// Leaves of the entry's parameters or of its result, tokens left out.
std::vector<Shape> ArgumentLeaves(const Module& module);
std::vector<Shape> ResultLeaves(const Module& module);

// The arguments of one device, the same for the same seed on every machine. Sizes depend on the seed alone: equal
// bounds have equal sizes on every device, full ones under seed 0.
Values SeededValues(const Module& module, uint64_t seed, int64_t device = 0);

// `arguments`: one for each device. The results of each device.
absl::StatusOr<std::vector<Values>> RunProgram(const Module& module, const std::vector<Values>& arguments,
                                               const CompileOptions& compile, const RunOptions& options);

// Between such values and the arrays that a compiled program has for them: of the bounds, then all sizes, leaf by leaf.
// What lies past a size is zero.
Values WithSizes(const Values& values, const std::vector<Shape>& leaves);
absl::StatusOr<Values> WithoutSizes(const Values& values, const std::vector<Shape>& leaves);

// Why `got` is not `want`, or OK: number of results, types, extents, and elements. Floats may differ by
// absolute + relative * |want|; NaN equals NaN.
struct Tolerance {
  double absolute = 0, relative = 0;
};
absl::Status SameValues(const Values& got, const Values& want, const Tolerance& tolerance);

}  // namespace kiln
