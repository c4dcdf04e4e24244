// Where two arrays differ most.
#pragma once

#include <string>

#include "compiler/hlo/literal.h"

namespace kiln {

// The element at which a measure of the difference is largest, the first of several. Infinite where one value is NaN or
// infinite and the other is not.
struct WorstElement {
  double value = 0;
  int64_t element = -1;  // in row-major order; -1: nothing differs
};

// How arrays of one shape differ. Both NaN counts as equal, and so do zeros of both signs; integers are compared
// exactly.
struct Difference {
  int64_t differing = 0;  // elements
  WorstElement absolute;
  // |got - want| / |want|, of elements that are not 0 where they should be; infinite if those alone differ.
  WorstElement relative;
  // Units in the last place of the wanted value, with sums that cancel measured against the array's largest magnitude /
  // 2^20. Of integers, what `absolute` is.
  WorstElement ulps;
};

// One pass over both. Shapes must be compatible.
Difference CompareArrays(const Literal& got, const Literal& want);

// An element as text, as "-0.5", "(1, -2)" or "7"; and its place, as "[1,11]", "" in a scalar.
std::string ElementText(const Literal& l, int64_t element);
std::string IndexText(const Shape& shape, int64_t element);

// "element 27 [1,11] is 0.5, not 0.25": the worst by `ulps`, then the largest absolute and relative difference with
// their places.
std::string Describe(const Difference& difference, const Literal& got, const Literal& want);

// The same as a JSON object's members: "differing", and "absolute", "relative" and "ulps", each {"value", "element",
// "index", "got", "want"} or, where nothing differs, {"value": 0}. An infinite value is the text "inf".
std::string DifferenceJson(const Difference& difference, const Literal& got, const Literal& want);

}  // namespace kiln
