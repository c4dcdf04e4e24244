// Reductions of windows at every CPU level that this machine runs: along neighbours and across them, with few taps and
// many, at edges and far from them, over elements that lie apart as gradients of pooling have them. Arrays
// that are padded between their elements. The evaluator says what is right.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"
#include "runtime_min/abi.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

constexpr const char* kNames[KILN_LEVELS] = KILN_CPU_LEVELS;

struct Reducer {
  const char *type, *op, *init;
  bool exact;
};
constexpr Reducer kReducers[] = {{"f32", "add", "0", false},
                                 {"f32", "maximum", "-inf", true},
                                 {"s32", "add", "3", true},
                                 {"bf16", "maximum", "-inf", true},
                                 {"f64", "minimum", "inf", true}};

struct Window {
  Ints array, result;
  const char* window;
};
const Window kWindows[] = {
    {{2, 13, 18, 5}, {2, 11, 14, 5}, "size=1x3x5x1"},
    {{2, 13, 18, 37}, {2, 6, 7, 37}, "size=1x3x5x1 stride=1x2x2x1"},
    {{1, 9, 17, 33}, {1, 6, 14, 33}, "size=1x4x4x1"},
    {{1, 3, 12, 40}, {1, 3, 10, 36}, "size=1x1x3x5"},
    {{1, 3, 12, 40}, {1, 3, 12, 40}, "size=1x1x3x5 pad=0_0x0_0x1_1x2_2"},
    {{2, 3, 9, 41}, {2, 3, 4, 14}, "size=1x1x3x3 stride=1x1x2x3 pad=0_0x0_0x0_0x1_1"},
    {{3, 90}, {3, 76}, "size=1x15"},
    // Elements apart along rows, along what lies around them, and both; windows smaller than the gaps and larger.
    {{2, 8, 9, 20}, {2, 15, 17, 20}, "size=1x3x3x1 pad=0_0x2_0x2_0x0_0 lhs_dilate=1x2x2x1"},
    {{2, 7, 5, 16}, {2, 23, 11, 16}, "size=1x5x3x1 pad=0_0x4_4x2_2x0_0 lhs_dilate=1x3x2x1"},
    {{2, 3, 8, 19}, {2, 3, 15, 37}, "size=1x1x3x3 pad=0_0x0_0x2_0x2_0 lhs_dilate=1x1x2x2"},
    {{2, 3, 8, 19}, {2, 3, 15, 58}, "size=1x1x2x2 pad=0_0x0_0x1_0x1_3 lhs_dilate=1x1x2x3"},
    {{1, 1, 6, 21}, {1, 1, 12, 42}, "size=1x1x2x2 pad=0_0x0_0x1_1x1_1 lhs_dilate=1x1x2x2"},
    {{5, 1100}, {5, 2196}, "size=1x3 pad=0_0x-2_1 lhs_dilate=1x2"},
    {{4, 30}, {4, 23}, "size=1x5 stride=1x4 pad=0_0x3_3 lhs_dilate=1x3"},
    {{4, 30}, {4, 55}, "size=1x3 lhs_dilate=1x2 rhs_dilate=1x2"},
    {{130}, {259}, "size=4 pad=2_1 lhs_dilate=2"},
};

std::string TextOf(const Reducer& r, const Window& w, bool computed) {
  const auto shape = [&](const Ints& dims) { return absl::StrCat(r.type, "[", absl::StrJoin(dims, ","), "]"); };
  return absl::StrReplaceAll(
      "HloModule m\nf {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  ROOT r = T[] OP(a, b)\n}\nENTRY e {\n"
      "  x = ARRAY parameter(0)\n  y = ARRAY BEFORE(x)\n  i = T[] constant(INIT)\n"
      "  w = RESULT reduce-window(y, i), window={WINDOW}, to_apply=f\n  ROOT r = RESULT negate(w)\n}\n",
      {{"T[]", absl::StrCat(r.type, "[]")},
       {"OP", r.op},
       {"ARRAY", shape(w.array)},
       {"RESULT", shape(w.result)},
       {"BEFORE", computed ? "negate" : "copy"},
       {"INIT", r.init},
       {"WINDOW", w.window}});
}

class Windows : public testing::TestWithParam<int> {};

TEST_P(Windows, AreThoseOfTheEvaluator) {
  if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  size_t turn = 0;
  for (const Window& w : kWindows)
    for (const Reducer& r : kReducers) {
      const std::string text = TextOf(r, w, turn++ % 3 == 0);
      auto module = ParseHlo(text, "t.hlo");
      ASSERT_TRUE(module.ok()) << module.status() << text;
      ASSERT_TRUE(VerifyModule(**module).ok()) << VerifyModule(**module) << text;
      std::vector<Values> arguments = {SeededValues(**module, static_cast<uint64_t>(turn))};
      if (r.exact && r.type[0] == 'f')
        arguments[0][0].Set(21, Literal::Of(arguments[0][0].type(), std::nan("")).Get(0));
      ExpectAsEvaluator(**module, arguments, kNames[GetParam()], 2, r.exact ? Tolerance{0, 0} : Tolerance{1e-5, 1e-6},
                        text);
    }
}

// Padding with less than the array before and behind, and between its elements, where nothing made a slice of it.
TEST_P(Windows, PaddingIsThatOfTheEvaluator) {
  if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  struct Padding {
    const char *array, *result, *padding;
  };
  for (const Padding& p : {Padding{"[8,3,1]", "[8,1,1]", "0_0x-1_-3_1x0_0"},  // padding alone, by a dimension of one
                           {"[8,3,6]", "[8,1,2]", "0_0x-1_-3_1x-1_-3"},
                           {"[3,40]", "[1,40]", "-1_-3_1x0_0"},
                           {"[3,40]", "[1,40]", "-2_-2_1x0_0"},
                           {"[3,40]", "[1,77]", "-2_-2_1x-1_-1_1"},
                           {"[40]", "[75]", "-2_-2_1"},
                           {"[4]", "[1]", "-2_-4_1"},
                           {"[4]", "[1]", "-1_-5_1"}}) {
    const std::string text = absl::StrCat("HloModule m\nENTRY e {\n x = s32", p.array,
                                          " parameter(0)\n c = s32[] constant(7)\n ROOT r = s32", p.result,
                                          " pad(x, c), padding=", p.padding, "\n}\n");
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status() << text;
    ASSERT_TRUE(VerifyModule(**module).ok()) << VerifyModule(**module) << text;
    ExpectAsEvaluator(**module, {SeededValues(**module, 5)}, kNames[GetParam()], 1, {}, text, Algebra::kXla,
                      {"algsimp"});
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Windows, testing::Range(0, static_cast<int>(KILN_LEVELS)),
                         [](const auto& i) { return std::string(kNames[i.param]); });

}  // namespace
}  // namespace kiln
