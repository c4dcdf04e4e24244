// Where arrays differ most, by each measure.
#include "aot/tools/difference.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Literal Floats(const Ints& dims, const std::vector<double>& values) {
  Literal out(Shape::Array(PrimitiveType::F32, dims));
  for (size_t k = 0; k < values.size(); ++k) out.Set(static_cast<int64_t>(k), {0, values[k], 0});
  return out;
}

Literal Integers(PrimitiveType type, const std::vector<int64_t>& values) {
  Literal out(Shape::Array(type, {static_cast<int64_t>(values.size())}));
  for (size_t k = 0; k < values.size(); ++k) out.Set(static_cast<int64_t>(k), {values[k], 0, 0});
  return out;
}

TEST(Difference, EachMeasureHasItsOwnElement) {
  const Literal want = Floats({2, 3}, {100, 1, 0.125, 0, 8, -2}), got = Floats({2, 3}, {101, 1.25, 0.125, 0.5, 8, -2});
  const Difference d = CompareArrays(got, want);
  EXPECT_EQ(d.differing, 3);
  EXPECT_EQ(d.absolute.value, 1);
  EXPECT_EQ(d.absolute.element, 0);
  EXPECT_EQ(d.relative.value, 0.25);  // not infinite, though one reference is 0
  EXPECT_EQ(d.relative.element, 1);
  EXPECT_EQ(d.ulps.element, 3);  // 0.5 where everything is about 100
  EXPECT_EQ(Describe(d, got, want),
            "element 3 [1,0] is 0.5, not 0; 3 of 6 differ, by up to 1 absolute at [0,0], 0.25 relative at [0,1]");
}

TEST(Difference, EqualArraysHaveNoPlace) {
  const Literal a = Floats({2}, {kNaN, 0}), b = Floats({2}, {kNaN, -0.0});
  const Difference d = CompareArrays(a, b);
  EXPECT_EQ(d.differing, 0);
  EXPECT_LT(d.absolute.element, 0);
  EXPECT_EQ(DifferenceJson(d, a, b),
            R"("differing":0,"absolute":{"value":0},"relative":{"value":0},"ulps":{"value":0})");
}

TEST(Difference, WhatIsNotFiniteIsInfinitelyFar) {
  for (const auto& [got, want] : {std::pair{kNaN, 1.0}, {1.0, kNaN}, {HUGE_VAL, 1.0}, {HUGE_VAL, -HUGE_VAL}}) {
    const Literal g = Floats({2}, {0, got}), w = Floats({2}, {1, want});
    const Difference d = CompareArrays(g, w);
    for (const WorstElement& e : {d.absolute, d.relative, d.ulps}) {
      EXPECT_TRUE(std::isinf(e.value)) << got << " " << want;
      EXPECT_EQ(e.element, 1);
    }
    EXPECT_NE(DifferenceJson(d, g, w).find("\"value\":\"inf\""), std::string::npos);
  }
}

TEST(Difference, RelativeToNothing) {
  const Difference d = CompareArrays(Floats({}, {0.5}), Floats({}, {0}));
  EXPECT_EQ(d.absolute.value, 0.5);
  EXPECT_TRUE(std::isinf(d.relative.value));
  EXPECT_EQ(IndexText(Shape::Array(PrimitiveType::F32, {}), 0), "");
}

// 2^60 and the number after it are one double.
TEST(Difference, IntegersAreExact) {
  const int64_t large = int64_t{1} << 60;
  Difference d = CompareArrays(Integers(PrimitiveType::S64, {5, large + 1}), Integers(PrimitiveType::S64, {5, large}));
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.absolute.value, 1);
  EXPECT_EQ(d.absolute.element, 1);
  const Literal most = Integers(PrimitiveType::U64, {-1}), none = Integers(PrimitiveType::U64, {0});
  d = CompareArrays(most, none);
  EXPECT_EQ(d.absolute.value, 0x1p64);
  EXPECT_EQ(ElementText(most, 0), "18446744073709551615");
  d = CompareArrays(Integers(PrimitiveType::S64, {std::numeric_limits<int64_t>::min()}),
                    Integers(PrimitiveType::S64, {std::numeric_limits<int64_t>::max()}));
  EXPECT_EQ(d.absolute.value, 0x1p64);
}

TEST(Difference, ImaginaryPartsCount) {
  Literal want(Shape::Array(PrimitiveType::C64, {2})), got = want;
  want.Set(1, {0, 4, 8});
  got.Set(1, {0, 4, 10});
  const Difference d = CompareArrays(got, want);
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.absolute.value, 2);
  EXPECT_EQ(d.relative.value, 0.25);
  EXPECT_EQ(ElementText(got, d.ulps.element), "(4, 10)");
}

}  // namespace
}  // namespace kiln
