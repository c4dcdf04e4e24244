// The first of rows at every CPU level that this machine runs: rows around the blocks that are compared at a time, many
// equal keys, NaNs, rows in the order that lets all elements in. Against the evaluator, bit for bit.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/abi.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

constexpr const char* kNames[KILN_LEVELS] = KILN_CPU_LEVELS;

struct Case {
  const char* type;
  int64_t n, k;
  bool largest, few_values, ordered;
};
constexpr Case kCases[] = {
    {"f32", 1000, 50, true, false, false},
    {"f32", 403, 9, false, false, true},
    {"f32", 700, 100, true, true, false},
    {"s32", 513, 8, true, false, true},
    {"u32", 321, 20, false, true, false},
    {"bf16", 640, 33, true, false, false},
    {"s8", 257, 12, false, false, false},
    {"f16", 64, 16, true, false, false},
    {"f32", 130, 64, true, false, false},
    // Long enough for a first look: of all of a row, of a part; with ties there, and where what is left comes last.
    {"f32", 2048, 64, true, false, false},
    {"f32", 20011, 50, true, false, false},
    {"f32", 5000, 60, false, true, false},
    {"s32", 17000, 3, true, false, true},
    {"bf16", 3000, 40, false, false, true},
    {"u32", 2500, 65, true, false, false},
};

class TopK : public testing::TestWithParam<int> {};

TEST_P(TopK, IsThatOfTheEvaluator) {
  if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  for (const Case& c : kCases) {
    const auto array = [&](int64_t n) { return absl::StrCat(c.type, "[5,", n, "]"); };
    const std::string text =
        absl::StrCat("HloModule m\nENTRY e {\n  x = ", array(c.n), " parameter(0)\n  ROOT t = (", array(c.k),
                     ", s32[5,", c.k, "]) topk(x), k=", c.k, ", largest=", c.largest ? "true" : "false", "\n}\n");
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status() << text;
    std::vector<Values> arguments = {SeededValues(**module, 3)};
    Literal& x = arguments[0][0];
    const auto set = [&](int64_t at, double value) { x.Set(at, Literal::Of(x.type(), value).Get(0)); };
    if (c.few_values)
      for (int64_t at = 0; at < x.size(); ++at) set(at, static_cast<double>(at * 7 % 5));
    if (c.ordered)
      for (int64_t at = 0; at < x.size(); ++at) set(at, static_cast<double>(c.largest ? at : -at));
    if (c.type[0] != 's' && c.type[0] != 'u') set(c.n + 77, std::nan(""));
    ExpectAsEvaluator(**module, arguments, kNames[GetParam()], 2, {0, 0}, text);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, TopK, testing::Range(0, static_cast<int>(KILN_LEVELS)),
                         [](const auto& i) { return std::string(kNames[i.param]); });

}  // namespace
}  // namespace kiln
