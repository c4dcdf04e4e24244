// Reductions at every CPU level that this machine runs: of dimensions on both sides of those that stay, of short rows
// and long ones, with extents of 1 between, of what is computed first. The evaluator says what is right.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/hlo/parser.h"
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
constexpr Reducer kReducers[] = {{"f32", "add", "2", false},        {"f32", "maximum", "-inf", true},
                                 {"u8", "maximum", "3", true},      {"s32", "add", "-5", true},
                                 {"bf16", "maximum", "-inf", true}, {"f64", "minimum", "inf", true},
                                 {"f32", "multiply", "1", false},   {"s16", "minimum", "30", true}};

struct Case {
  Ints array, dims;
};
const Case kCases[] = {
    {{5, 121, 8, 8}, {0, 3}},   {{21, 31, 1, 7}, {0, 2}}, {{3, 40, 2, 5}, {0, 2, 3}},   {{2, 6, 9, 3, 4}, {1, 3, 4}},
    {{4, 1, 6, 1, 5}, {1, 4}},  {{3, 1100, 2}, {0, 2}},   {{2, 3, 63}, {0, 2}},         {{2, 3, 64}, {0, 2}},
    {{1, 9, 1, 33}, {0, 2, 3}}, {{7, 1, 1, 40}, {0, 1}},  {{2, 5, 4, 3, 6}, {0, 2, 4}}, {{1, 7, 1}, {0, 2}},
};

std::string TextOf(const Reducer& r, const Case& c, bool computed) {
  Ints kept;
  for (size_t d = 0; d < c.array.size(); ++d)
    if (std::find(c.dims.begin(), c.dims.end(), d) == c.dims.end()) kept.push_back(c.array[d]);
  const auto shape = [&](const Ints& dims) { return absl::StrCat(r.type, "[", absl::StrJoin(dims, ","), "]"); };
  return absl::StrReplaceAll(
      "HloModule m\nf {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  ROOT r = T[] OP(a, b)\n}\nENTRY e {\n"
      "  x = ARRAY parameter(0)\n  y = ARRAY BEFORE(x, x)\n  i = T[] constant(INIT)\n"
      "  ROOT r = RESULT reduce(y, i), dimensions={DIMS}, to_apply=f\n}\n",
      {{"T[]", absl::StrCat(r.type, "[]")},
       {"OP", r.op},
       {"ARRAY", shape(c.array)},
       {"RESULT", shape(kept)},
       {"BEFORE", computed ? "add" : "maximum"},
       {"INIT", r.init},
       {"DIMS", absl::StrJoin(c.dims, ",")}});
}

class Reductions : public testing::TestWithParam<int> {};

TEST_P(Reductions, AreThoseOfTheEvaluator) {
  if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  size_t turn = 0;
  for (const Case& c : kCases)
    for (const Reducer& r : kReducers) {
      const std::string text = TextOf(r, c, turn++ % 3 == 0);
      auto module = ParseHlo(text, "t.hlo");
      ASSERT_TRUE(module.ok()) << module.status() << text;
      std::vector<Values> arguments = {SeededValues(**module, static_cast<uint64_t>(turn))};
      if (r.exact && r.type[0] == 'f') arguments[0][0].Set(3, Literal::Of(arguments[0][0].type(), std::nan("")).Get(0));
      const Tolerance tolerance = r.exact ? Tolerance{0, 0} : Tolerance{1e-4, 1e-5};
      ExpectAsEvaluator(**module, arguments, kNames[GetParam()], 2, tolerance, text);
    }
}

// Where nothing made constants of them.
TEST_P(Reductions, OfNoElements) {
  if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  for (const Case& c : {Case{{7, 7, 0}, {0, 2}}, {{0, 7, 3}, {0, 2}}, {{3, 0, 2}, {0, 2}}, {{2, 0}, {1}}, {{}, {}}}) {
    const std::string text = TextOf(kReducers[3], c, false);
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status() << text;
    ExpectAsEvaluator(**module, {SeededValues(**module, 5)}, kNames[GetParam()], 1, {}, text, Algebra::kXla,
                      {"algsimp", "constant-folding"});
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Reductions, testing::Range(0, static_cast<int>(KILN_LEVELS)),
                         [](const auto& i) { return std::string(kNames[i.param]); });

}  // namespace
}  // namespace kiln
