// Running reductions at every CPU level that this machine runs: extents around the lines that go together and around
// their blocks, both directions, operands that are computed first. The evaluator says what is right.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/abi.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

constexpr const char* kNames[KILN_LEVELS] = KILN_CPU_LEVELS;

struct Case {
  const char *type, *op, *init;
  bool exact;
};
constexpr Case kCases[] = {
    {"f32", "add", "0", false},      {"f32", "maximum", "-inf", true}, {"f64", "minimum", "inf", true},
    {"s32", "add", "3", true},       {"s64", "multiply", "1", true},   {"bf16", "maximum", "-inf", true},
    {"f64", "multiply", "1", false},
};
const Ints kShapes[] = {{19, 40}, {16, 33}, {3, 18, 37}, {2, 65, 16}, {37, 32}, {4, 70}};

std::string TextOf(const Case& c, const Ints& dims, bool backward, bool computed) {
  const std::string array = absl::StrCat(c.type, "[", absl::StrJoin(dims, ","), "]");
  const int64_t line = dims.back();
  std::string size, pad;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    absl::StrAppend(&size, "1x");
    absl::StrAppend(&pad, "0_0x");
  }
  absl::StrAppend(&size, line);
  absl::StrAppend(&pad, backward ? 0 : line - 1, "_", backward ? line - 1 : 0);
  return absl::StrCat("HloModule m\nf {\n  a = ", c.type, "[] parameter(0)\n  b = ", c.type,
                      "[] parameter(1)\n  ROOT r = ", c.type, "[] ", c.op, "(a, b)\n}\nENTRY e {\n  x = ", array,
                      " parameter(0)\n  y = ", array, computed ? " negate(x)" : " copy(x)", "\n  i = ", c.type,
                      "[] constant(", c.init, ")\n  ROOT r = ", array, " reduce-window(y, i), window={size=", size,
                      " pad=", pad, "}, to_apply=f\n}\n");
}

class Scans : public testing::TestWithParam<int> {};

TEST_P(Scans, AreThoseOfTheEvaluator) {
  if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  size_t turn = 0;
  for (const Case& c : kCases)
    for (const Ints& dims : kShapes) {
      const std::string text = TextOf(c, dims, turn % 2 == 1, turn % 3 == 0);
      ++turn;
      auto module = ParseHlo(text, "t.hlo");
      ASSERT_TRUE(module.ok()) << module.status() << text;
      std::vector<Values> arguments = {SeededValues(**module, static_cast<uint64_t>(turn))};
      // Once a line holds a NaN, so do all results behind it.
      if (c.exact && c.type[0] == 'f')
        arguments[0][0].Set(21, Literal::Of(arguments[0][0].type(), std::nan("")).Get(0));
      ExpectAsEvaluator(**module, arguments, kNames[GetParam()], 2, c.exact ? Tolerance{0, 0} : Tolerance{1e-5, 1e-6},
                        text);
    }
}

// Short sums round in every step, long ones where they are stored: here in the evaluator's order.
TEST_P(Scans, OfNarrowFloatsRoundAsTheEvaluators) {
  if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  for (const char* type : {"bf16", "f16"})
    for (const Ints& dims : {Ints{16, 33}, Ints{17, 150}}) {
      const std::string text = TextOf({type, "add", "0", true}, dims, false, false);
      auto module = ParseHlo(text, "t.hlo");
      ASSERT_TRUE(module.ok()) << module.status() << text;
      ExpectAsEvaluator(**module, {SeededValues(**module, 3)}, kNames[GetParam()], 2, {0, 0}, text);
    }
}

INSTANTIATE_TEST_SUITE_P(Levels, Scans, testing::Range(0, static_cast<int>(KILN_LEVELS)),
                         [](const auto& i) { return std::string(kNames[i.param]); });

}  // namespace
}  // namespace kiln
