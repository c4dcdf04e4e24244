// Chains of operations on bf16 and f16, which keep the digits and the range of an f32 inside a kernel unless algebra is
// exact; what jumps takes rounded operands in any case. Against the evaluator, which rounds every operation.
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

class Chains : public testing::TestWithParam<const char*> {
 protected:
  void Compare(const std::string& text, const Tolerance& tolerance, Algebra algebra) {
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status() << text;
    ExpectAsEvaluator(**module, {SeededValues(**module, 3)}, GetParam(), 1, tolerance, text, algebra);
  }
  // Element 0 of what a program without arguments gives.
  double Element(const std::string& text, Algebra algebra) {
    auto module = ParseHlo(text, "t.hlo");
    EXPECT_TRUE(module.ok()) << module.status() << text;
    CompileOptions compile;
    compile.cpu.levels = {GetParam()};
    compile.pipeline.algebra = algebra;
    const auto values = RunProgram(**module, {SeededValues(**module, 3)}, compile, RunOptions());
    EXPECT_TRUE(values.ok()) << values.status();
    return (*values)[0][0].Get(0).re;
  }
};

// A second moment that f16 has no number for: its root does where it was not rounded.
TEST_P(Chains, KeepTheRangeOfF32) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f16[64] parameter(0)
  zero = f16[] constant(0)
  zeros = f16[64] broadcast(zero), dimensions={}
  nothing = f16[64] multiply(x, zeros)
  small = f16[] constant(1e-5)
  smalls = f16[64] broadcast(small), dimensions={}
  v = f16[64] add(nothing, smalls)
  square = f16[64] multiply(v, v)
  two = f16[] constant(2)
  twos = f16[64] broadcast(two), dimensions={}
  sum = f16[64] add(square, nothing)
  root = f16[64] sqrt(sum)
  ROOT r = f16[64] multiply(root, twos)
})";
  EXPECT_NEAR(Element(text, Algebra::kXla), 2e-5, 1e-6);
  EXPECT_EQ(Element(text, Algebra::kExact), 0);
}

TEST_P(Chains, AreTheEvaluatorsWhereAlgebraIsExact) {
  for (const char* type : {"bf16", "f16"}) {
    std::string text = R"(HloModule m
ENTRY e {
  x = T[7,45] parameter(0)
  y = T[7,45] parameter(1)
  a = T[7,45] multiply(x, y)
  b = T[7,45] add(a, x)
  c = T[7,45] subtract(b, y)
  d = T[7,45] multiply(c, a)
  ROOT e = T[7,45] add(d, b)
})";
    for (size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, type);
    Compare(text, {0, 0}, Algebra::kExact);
    // Of a few units in the last place of the values on the way.
    Compare(text, {0.1, 0.05}, Algebra::kXla);
  }
}

// Where the largest of a row is, and values below a bound: masks are those of the rounded values, bit for bit.
TEST_P(Chains, JumpWhereRoundedValuesDo) {
  for (const char* type : {"bf16", "f16"}) {
    std::string text = R"(HloModule m
larger {
  p = T[] parameter(0)
  q = T[] parameter(1)
  ROOT m = T[] maximum(p, q)
}
ENTRY e {
  x = T[33,50] parameter(0)
  y = T[33,50] parameter(1)
  product = T[33,50] multiply(x, y)
  least = T[] constant(-inf)
  largest = T[33] reduce(product, least), dimensions={1}, to_apply=larger
  spread = T[33,50] broadcast(largest), dimensions={0}
  here = pred[33,50] compare(product, spread), direction=EQ
  below = T[33,50] floor(product)
  whole = s32[33,50] convert(product)
  sign = T[33,50] sign(product)
  rest = T[33,50] remainder(product, y)
  finite = pred[33,50] is-finite(product)
  ROOT t = (pred[33,50], T[33,50], s32[33,50], T[33,50], T[33,50], pred[33,50])
    tuple(here, below, whole, sign, rest, finite)
})";
    for (size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, type);
    Compare(text, {0, 0}, Algebra::kXla);
  }
}

// Which of equal elements is chosen: rounding makes many of them equal.
TEST_P(Chains, ChooseAmongRoundedValues) {
  for (const char* type : {"bf16", "f16"}) {
    std::string text = R"(HloModule m
later {
  p = T[] parameter(0)
  i = s32[] parameter(1)
  q = T[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(p, q), direction=GT
  same = pred[] compare(p, q), direction=EQ
  less = pred[] compare(i, j), direction=LT
  first = pred[] and(same, less)
  keep = pred[] or(more, first)
  x = T[] select(keep, p, q)
  k = s32[] select(keep, i, j)
  ROOT t = (T[], s32[]) tuple(x, k)
}
ge {
  p = T[] parameter(0)
  q = T[] parameter(1)
  ROOT r = pred[] compare(p, q), direction=GE
}
sum {
  p = T[] parameter(0)
  q = T[] parameter(1)
  ROOT r = T[] add(p, q)
}
ENTRY e {
  x = T[6,900] parameter(0)
  far = T[] constant(300)
  fars = T[6,900] broadcast(far), dimensions={}
  near = T[6,900] add(x, fars)
  zero = T[] constant(0)
  zeros = T[6,900] broadcast(zero), dimensions={}
  positive = T[6,900] maximum(near, zeros)
  least = T[] constant(-inf)
  none = s32[] constant(0)
  place = s32[6,900] iota(), iota_dimension=1
  found = (T[6], s32[6]) reduce(positive, place, least, none), dimensions={1}, to_apply=later
  where = s32[6] get-tuple-element(found), index=1
  g = T[6,225] parameter(1)
  y = T[6,900] parameter(2)
  apart = T[6,900] add(y, fars)
  back = T[6,900] select-and-scatter(apart, g, zero), window={size=1x4 stride=1x4}, select=ge, scatter=sum
  ROOT t = (s32[6], T[6,900]) tuple(where, back)
})";
    for (size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, type);
    Compare(text, {0, 0}, Algebra::kXla);
  }
}

INSTANTIATE_TEST_SUITE_P(, Chains, testing::Values("native", "v3", "v2"));

}  // namespace
}  // namespace kiln
