// Many short rows, and one long row, sorted at every CPU level that this machine runs: along all dimensions, alone and
// with places, by elements as they are and with one zero and one NaN as JAX has them, where some rows have several of
// these. Lengths around blocks and powers of two, rows that fill groups and that do not. Against the evaluator, bit for
// bit: equal keys keep their order.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/cpu/level.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

constexpr const char* kNames[KILN_LEVELS] = KILN_CPU_LEVELS;

struct Case {
  std::string type;
  std::vector<int64_t> dims;
  int64_t along;
  bool descending, one_zero, meet;  // meet: some elements have the key of another
};
const Case kCases[] = {
    {"f32", {21, 257}, 1, false, true, false},  {"f32", {21, 257}, 1, true, true, true},
    {"f32", {16, 64}, 1, false, false, true},   {"f32", {257, 40}, 0, false, true, true},
    {"f32", {3, 33, 5}, 1, false, true, true},  {"f32", {3, 300, 2}, 1, true, true, false},
    {"s32", {50, 7}, 1, false, false, true},    {"u32", {18, 1000}, 1, true, false, true},
    {"s8", {9, 15}, 1, false, false, true},     {"u16", {100, 16}, 0, true, false, true},
    {"bf16", {20, 100}, 1, false, false, true}, {"f16", {31, 17}, 0, true, false, true},
    {"s32", {2, 3, 2}, 2, true, false, true},   {"f32", {1000, 4}, 1, false, true, true},
    {"f32", {2, 400}, 1, false, true, true},    {"f32", {2, 400}, 1, true, true, false},
    {"f32", {8300}, 0, true, true, true},       {"u8", {3000}, 0, false, false, true},
};

class SortRows : public testing::TestWithParam<int> {};

// What is compared of `a` and `b`, as ca and cb.
std::string Compared(const Case& c) {
  if (!c.one_zero) return "";
  std::string text = " zero = f32[] constant(0)\n nan = f32[] constant(nan)\n";
  for (const char* x : {"a", "b"})
    absl::StrAppend(&text, " z", x, " = pred[] compare(", x, ", zero), direction=EQ\n y", x, " = f32[] select(z", x,
                    ", zero, ", x, ")\n n", x, " = pred[] compare(", x, ", ", x, "), direction=NE\n c", x,
                    " = f32[] select(n", x, ", nan, y", x, ")\n");
  return text;
}

TEST_P(SortRows, AreThoseOfTheEvaluator) {
  if (best_level(1u << GetParam()) < 0) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  for (const Case& c : kCases) {
    const bool is_float = c.type[0] == 'f' || c.type[0] == 'b';
    const std::string dims = absl::StrCat("[", absl::StrJoin(c.dims, ","), "]"), array = c.type + dims;
    const std::string bits = absl::StrCat("u", c.type == "bf16" ? "16" : c.type.substr(1)) + dims;
    const std::string order =
        absl::StrCat(" ROOT r = pred[] compare(", c.one_zero ? "ca, cb" : "a, b",
                     "), direction=", c.descending ? "GT" : "LT", is_float ? ", type=TOTALORDER" : "", "\n}\n");
    const std::string scalars = absl::StrCat(" a = ", c.type, "[] parameter(0)\n b = ", c.type, "[] parameter(1)\n");
    const std::string along = absl::StrCat("dimensions={", c.along, "}, is_stable=true, to_apply=");
    const std::string text =
        absl::StrCat("HloModule m\none {\n", scalars, Compared(c), order, "two {\n", scalars,
                     " v = s32[] parameter(2)\n w = s32[] parameter(3)\n", Compared(c), order,
                     "ENTRY e {\n x = ", array, " parameter(0)\n i = s32", dims, " iota(), iota_dimension=", c.along,
                     "\n r = ", array, " sort(x), ", along, "one\n p = (", array, ", s32", dims, ") sort(x, i), ",
                     along, "two\n q = ", array, " get-tuple-element(p), index=0\n g = s32", dims,
                     " get-tuple-element(p), index=1\n rb = ", bits, " bitcast-convert(r)\n qb = ", bits,
                     " bitcast-convert(q)\n ROOT t = (", bits, ", ", bits, ", s32", dims, ") tuple(rb, qb, g)\n}\n");
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status() << text;
    std::vector<Values> arguments = {SeededValues(**module, 3)};
    Literal& x = arguments[0][0];
    const auto set = [&](int64_t at, double value) { x.Set(at, Literal::Of(x.type(), value).Get(0)); };
    if (c.meet)  // in the first half, so that other rows have none
      for (int64_t at = 0; at < x.size() / 2; ++at)
        if (at % 3 == 0) set(at, static_cast<double>(at * 7 % 5));
    if (c.meet && is_float)
      for (int64_t at = 0; at < x.size() / 2; at += 10) set(at, at % 4 == 0 ? -0.0 : -std::nan(""));
    ExpectAsEvaluator(**module, arguments, kNames[GetParam()], 2, {0, 0}, text);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, SortRows, testing::Range(0, static_cast<int>(KILN_LEVELS)),
                         [](const auto& i) { return std::string(kNames[i.param]); });

}  // namespace
}  // namespace kiln
