// Searches for the greatest element and its place, at every CPU level that this machine runs: along rows and columns,
// of short and long ones, with many equal elements, zeros of both signs, NaNs and rows that hold nothing above what the
// search begins with, which has a place of its own. Against the evaluator; the sign of a
// zero that is found is that of any of them.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/abi.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

constexpr const char* kNames[KILN_LEVELS] = KILN_CPU_LEVELS;

struct Case {
  int64_t rows, columns, along;
  const char* order;  // of values, where a search keeps what it has
  const char *first, *place;
};
constexpr Case kCases[] = {
    {21, 257, 1, "GT", "-inf", "0"}, {21, 257, 0, "GT", "-inf", "0"}, {64, 1100, 0, "LT", "inf", "0"},
    {64, 1100, 1, "LT", "inf", "0"}, {64, 1024, 0, "GT", "2", "0"},   {33, 2000, 0, "GT", "-inf", "7"},
    {9, 300, 1, "GT", "2", "-1"},    {300, 3, 0, "LT", "0", "0"},     {1, 5000, 1, "GT", "-0", "0"},
    {100, 16, 1, "GT", "-inf", "0"}, {65, 40, 1, "LT", "2", "7"},     {150, 128, 1, "GT", "-inf", "-1"},
    {17, 129, 1, "LT", "inf", "0"},  {15, 33, 1, "GT", "-inf", "0"},
};

class Search : public testing::TestWithParam<int> {};

TEST_P(Search, FindsWhatTheEvaluatorFinds) {
  if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  for (const Case& c : kCases) {
    const std::string dims = absl::StrCat("[", c.rows, ",", c.columns, "]");
    const std::string kept = absl::StrCat("[", c.along == 0 ? c.columns : c.rows, "]");
    const std::string text = absl::StrCat(
        "HloModule m\nchoose {\n a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] "
        "parameter(3)\n above = pred[] compare(a, b), direction=",
        c.order,
        "\n nan = pred[] compare(a, a), direction=NE\n keep = pred[] or(above, nan)\n same = pred[] compare(a, b), "
        "direction=EQ\n lower = pred[] compare(i, j), direction=LT\n tie = pred[] and(same, lower)\n stay = pred[] "
        "or(keep, tie)\n v = f32[] select(keep, a, b)\n p = s32[] select(stay, i, j)\n ROOT t = (f32[], s32[]) "
        "tuple(v, p)\n}\nENTRY e {\n x = f32",
        dims, " parameter(0)\n at = s32", dims, " iota(), iota_dimension=", c.along, "\n first = f32[] constant(",
        c.first, ")\n place = s32[] constant(", c.place, ")\n r = (f32", kept, ", s32", kept,
        ") reduce(x, at, first, place), dimensions={", c.along, "}, to_apply=choose\n v = f32", kept,
        " get-tuple-element(r), index=0\n p = s32", kept, " get-tuple-element(r), index=1\n ROOT t = (f32", kept,
        ", s32", kept, ") tuple(v, p)\n}\n");
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status() << text;
    std::vector<Values> arguments = {SeededValues(**module, 3)};
    Literal& x = arguments[0][0];
    const auto set = [&](int64_t k, double value) { x.Set(k, Literal::Of(x.type(), value).Get(0)); };
    for (int64_t k = 0; k < x.size(); ++k) {
      const int64_t line = c.along == 0 ? k % c.columns : k / c.columns;
      if (line % 3 == 0) set(k, static_cast<double>(k * 7 % 5 - 2));
      if (line % 3 == 1) set(k, k % 2 ? 0.0 : -0.0);
      if (line % 8 == 2 && k % 13 == 0) set(k, std::nan(""));
    }
    ExpectAsEvaluator(**module, arguments, kNames[GetParam()], 2, {0, 0}, text);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Search, testing::Range(0, static_cast<int>(KILN_LEVELS)),
                         [](const auto& i) { return std::string(kNames[i.param]); });

}  // namespace
}  // namespace kiln
