// Dots and convolutions, narrow types above all, at every CPU level that this machine runs: extents around the groups,
// vectors and blocks of the dot instructions, both layouts of each operand, windows of every kind. The evaluator says
// what is right.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "aot/tools/program.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/cpu/level.h"

namespace kiln {
namespace {

constexpr const char* kNames[LEVELS] = KILN_CPU_LEVELS;

struct Types {
  const char *a, *b, *c;
};
constexpr Types kTypes[] = {
    {"s8", "s8", "s32"},    {"u8", "u8", "s32"},   {"s8", "u8", "s32"},         {"u8", "s8", "s32"},
    {"s4", "s8", "s32"},    {"u8", "u4", "s32"},   {"bf16", "bf16", "f32"},     {"bf16", "bf16", "bf16"},
    {"s8", "bf16", "bf16"}, {"s8", "s8", "f32"},   {"f8e4m3fn", "bf16", "f32"}, {"f8e5m2", "f8e4m3fn", "f32"},
    {"s32", "s32", "s32"},  {"f16", "f16", "f16"}, {"f64", "f64", "f64"},       {"s8", "u8", "s8"},
    {"u16", "u16", "u16"},  {"s64", "s64", "s64"}, {"s16", "s8", "s32"},        {"f32", "f32", "f32"},
};

struct DotCase {
  int64_t batch, m, n, k;
  bool a_turned, b_turned;
};
constexpr DotCase kDots[] = {
    {1, 16, 32, 64, false, false},  {2, 3, 16, 3, false, false},    {1, 17, 33, 7, false, true},
    {1, 33, 64, 130, true, true},   {2, 14, 31, 1030, true, false}, {1, 100, 48, 65, false, true},
    {1, 5, 17, 4099, false, false}, {1, 1, 20, 9, false, false},    {1, 40, 1, 12, false, false},
};

struct ConvolutionCase {
  int64_t cin, cout, size, groups;
  int64_t stride, pad, rhs_dilate, lhs_dilate;
  bool reversed, features_first;
};
constexpr ConvolutionCase kConvolutions[] = {
    {4, 16, 3, 1, 1, 1, 1, 1, false, false},  {3, 20, 3, 1, 2, 0, 1, 1, false, false},
    {16, 33, 1, 1, 1, 0, 1, 1, false, false}, {5, 8, 3, 2, 1, 1, 2, 1, false, false},
    {6, 16, 2, 1, 1, 0, 1, 2, true, true},    {4, 1, 3, 1, 1, 1, 1, 1, false, false},
    {1, 1, 3, 20, 1, 1, 1, 1, false, false},  {33, 5, 3, 1, 1, 1, 1, 1, false, true},
};

std::string Array(const char* type, const Ints& dims) { return absl::StrCat(type, "[", absl::StrJoin(dims, ","), "]"); }

std::string TextOf(const Types& t, const DotCase& d) {
  return absl::StrCat(
      "  x = ", Array(t.a, d.a_turned ? Ints{d.batch, d.k, d.m} : Ints{d.batch, d.m, d.k}),
      " parameter(0)\n  y = ", Array(t.b, d.b_turned ? Ints{d.batch, d.n, d.k} : Ints{d.batch, d.k, d.n}),
      " parameter(1)\n  ROOT r = ", Array(t.c, {d.batch, d.m, d.n}),
      " dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={", d.a_turned ? 1 : 2,
      "}, rhs_contracting_dims={", d.b_turned ? 2 : 1, "}");
}

std::string TextOf(const Types& t, const ConvolutionCase& v) {
  const auto extent = [&](int64_t in) {
    return ((in - 1) * v.lhs_dilate + 2 * v.pad - (v.size - 1) * v.rhs_dilate) / v.stride + 1;
  };
  const int64_t in = v.cin * v.groups, out = v.cout * v.groups, high = extent(9), wide = extent(7);
  const auto both = [](int64_t n) { return absl::StrCat(n, "x", n); };
  const bool f = v.features_first;
  return absl::StrCat("  x = ", Array(t.a, f ? Ints{2, in, 9, 7} : Ints{2, 9, 7, in}), " parameter(0)\n  y = ",
                      Array(t.b, f ? Ints{out, v.cin, v.size, v.size} : Ints{v.size, v.size, v.cin, out}),
                      " parameter(1)\n  ROOT r = ", Array(t.c, f ? Ints{2, out, high, wide} : Ints{2, high, wide, out}),
                      " convolution(x, y), window={size=", both(v.size), " stride=", both(v.stride), " pad=", v.pad,
                      "_", v.pad, "x", v.pad, "_", v.pad, " rhs_dilate=", both(v.rhs_dilate),
                      " lhs_dilate=", both(v.lhs_dilate), v.reversed ? " rhs_reversal=1x1" : "",
                      "}, dim_labels=", f ? "bf01_oi01->bf01" : "b01f_01io->b01f", ", feature_group_count=", v.groups);
}

// The same with a bias of the last dimension added to its results, which become f32 or bf16.
std::string WithBias(const std::string& text, const char* type) {
  const size_t root = text.find("ROOT r = "), from = text.find('[', root), to = text.find(']', root);
  const std::string dims = text.substr(from + 1, to - from - 1);
  const std::vector<std::string> extents = absl::StrSplit(dims, ',');
  return absl::StrCat(absl::StrReplaceAll(text, {{"ROOT r", "r"}}), "\n  w = ", type, "[", dims,
                      "] convert(r)\n  b = ", type, "[", extents.back(), "] parameter(2)\n  bs = ", type, "[", dims,
                      "] broadcast(b), dimensions={", extents.size() - 1, "}\n  ROOT s = ", type, "[", dims,
                      "] add(w, bs)");
}

class Products : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!level_runs(GetParam())) GTEST_SKIP() << "this machine does not run " << Level();
  }
  std::string Level() const { return kNames[GetParam()]; }

  void Compare(const std::string& body, bool exact, int threads = 1) {
    const std::string text = absl::StrCat("HloModule m\nENTRY e {\n", body, "\n}\n");
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status();
    const std::vector<Values> arguments = {SeededValues(**module, 7)};
    CompileOptions compile;
    compile.cpu.levels = {Level()};
    RunOptions run;
    run.threads = threads;
    const auto got = RunProgram(**module, arguments, compile, run);
    run.backend = "reference";
    const auto want = RunProgram(**module, arguments, compile, run);
    ASSERT_TRUE(got.ok() && want.ok()) << text << got.status() << want.status();
    // Sums of bf16 have another order, and round once more where the result is bf16.
    const Tolerance tolerance = exact ? Tolerance{0, 0} : Tolerance{0.02, 0.01};
    const absl::Status same = SameValues((*got)[0], (*want)[0], tolerance);
    EXPECT_TRUE(same.ok()) << text << Level() << ": " << same;
  }
};

// Each case with a third of the types, each type with a third of the cases.
template <typename Case, size_t cases, typename Visit>
void ForPairs(size_t shift, const Case (&list)[cases], const Visit& visit) {
  for (size_t t = 0; t < std::size(kTypes); ++t)
    for (size_t c = 0; c < cases; ++c)
      if ((t + c + shift) % 3 == 0) visit(TextOf(kTypes[t], list[c]), kTypes[t].c[0] == 's' || kTypes[t].c[0] == 'u');
}

TEST_P(Products, OfMatrices) {
  ForPairs(0, kDots, [&](const std::string& text, bool exact) { Compare(text, exact); });
}

TEST_P(Products, OfComplexMatrices) {
  for (const char* type : {"c64", "c128"})
    for (const DotCase& d : kDots) Compare(TextOf({type, type, type}, d), false);
  Compare(TextOf({"c64", "c64", "c64"}, DotCase{1, 40, 300, 512, true, true}), false, 2);
}

TEST_P(Products, OfWindows) {
  ForPairs(0, kConvolutions, [&](const std::string& text, bool exact) { Compare(text, exact); });
}

TEST_P(Products, OfMatricesWithABias) {
  int count = 0;
  ForPairs(1, kDots,
           [&](const std::string& text, bool) { Compare(WithBias(text, ++count % 2 ? "f32" : "bf16"), false); });
}

TEST_P(Products, OfWindowsWithABias) {
  int count = 0;
  ForPairs(1, kConvolutions,
           [&](const std::string& text, bool) { Compare(WithBias(text, ++count % 2 ? "f32" : "bf16"), false); });
}

// Few rows, or few pixels with many features: parts of the columns are units of work.
TEST_P(Products, InParts) {
  constexpr ConvolutionCase kCases[] = {
      {64, 128, 3, 1, 1, 1, 1, 1, false, true},
      {512, 256, 1, 1, 1, 0, 1, 1, false, false},
      {256, 128, 3, 1, 2, 1, 1, 1, false, true},
  };
  const Types f32 = {"f32", "f32", "f32"}, s8 = {"s8", "s8", "s32"};
  Compare(WithBias(TextOf(f32, kCases[0]), "f32"), false, 2);
  Compare(TextOf(s8, kCases[1]), true, 2);
  Compare(TextOf(f32, kCases[2]), false, 2);
  Compare(TextOf(f32, DotCase{1, 40, 300, 512, false, false}), false, 2);
  Compare(WithBias(TextOf(kTypes[6], DotCase{1, 40, 300, 512, true, true}), "bf16"), false, 2);
}

INSTANTIATE_TEST_SUITE_P(Levels, Products, testing::Range(0, static_cast<int>(LEVELS)),
                         [](const auto& info) { return std::string(kNames[info.param]); });

}  // namespace
}  // namespace kiln
