// Dots and convolutions, narrow types above all, at every CPU level that this machine runs: extents around the groups,
// vectors and blocks of the dot instructions, both layouts of each operand, windows of every kind, weights that are
// constants. The evaluator says what is right.
#include <array>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/abi.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

constexpr const char* kNames[KILN_LEVELS] = KILN_CPU_LEVELS;

struct Types {
  const char *a, *b, *c;
};
constexpr Types kTypes[] = {
    {"s8", "s8", "s32"},    {"u8", "u8", "s32"},   {"s8", "u8", "s32"},         {"u8", "s8", "s32"},
    {"s4", "s8", "s32"},    {"u8", "u4", "s32"},   {"bf16", "bf16", "f32"},     {"bf16", "bf16", "bf16"},
    {"s8", "bf16", "bf16"}, {"s8", "s8", "f32"},   {"f8e4m3fn", "bf16", "f32"}, {"f8e5m2", "f8e4m3fn", "f32"},
    {"s32", "s32", "s32"},  {"f16", "f16", "f16"}, {"f64", "f64", "f64"},       {"s8", "u8", "s8"},
    {"u16", "u16", "u16"},  {"s64", "s64", "s64"}, {"s16", "s8", "s32"},        {"f32", "f32", "f32"},
    {"f32", "s8", "f32"},   {"f32", "f16", "f32"},
};

struct DotCase {
  int64_t batch, m, n, k;
  bool a_turned, b_turned;
};
constexpr DotCase kDots[] = {
    {1, 16, 32, 64, false, false},   {2, 3, 16, 3, false, false},    {1, 17, 33, 7, false, true},
    {1, 33, 64, 130, true, true},    {2, 14, 31, 1030, true, false}, {1, 100, 48, 65, false, true},
    {1, 5, 17, 4099, false, false},  {1, 1, 20, 9, false, false},    {1, 40, 1, 12, false, false},
    {1, 40, 3, 70, false, false},    {2, 19, 2, 130, true, true},    {1, 23, 4, 33, false, true},
    {1, 9, 1040, 301, false, false}, {1, 37, 48, 21, true, false},   {3, 16, 16, 48, true, true},
    {1, 5, 40, 6, true, false},
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
    {33, 3, 3, 1, 1, 1, 2, 1, false, false},  {34, 1, 3, 1, 2, 1, 1, 1, true, false},
    {40, 4, 1, 1, 1, 0, 1, 1, false, false},  {36, 2, 3, 1, 1, 1, 1, 1, false, true},
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

// The second argument becomes a constant of the program.
void MakeConstant(Module* m, Values* arguments) {
  Computation* entry = m->entry();
  Instruction* weights = entry->AddConstant((*arguments)[1]);
  entry->parameter(1)->ReplaceAllUsesWith(weights);
  entry->RemoveParameter(1);
  arguments->erase(arguments->begin() + 1);
}

class Products : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!x86::CanEmulate(Level()).ok()) GTEST_SKIP() << "this machine does not run " << Level();
    emulated_ = !x86::MachineRuns(Level());
  }
  std::string Level() const { return kNames[GetParam()]; }

  // Those that levels add instructions for. Other code is that of the level below.
  static bool HasNarrowTypes(const std::string& body) {
    for (const char* type : {"s4[", "u4[", "s8[", "u8[", "f8e", "f16["})  // f16 of bf16 too
      if (absl::StrContains(body, type)) return true;
    return false;
  }

  bool emulated_ = false;

  enum Weights { kArgument, kConstant };

  void Compare(const std::string& body, bool exact, int threads = 1, Weights weights = kArgument,
               const std::function<void(Values&)>& change = nullptr) {
    if (emulated_ && !HasNarrowTypes(body)) return;
    const std::string text = absl::StrCat("HloModule m\nENTRY e {\n", body, "\n}\n");
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status();
    std::vector<Values> arguments = {SeededValues(**module, 7)};
    if (change) change(arguments[0]);
    if (weights == kConstant) MakeConstant(module->get(), &arguments[0]);
    // Sums of bf16 have another order, and round once more where the result is bf16.
    // Short sums of f16 are f16 where that is faster.
    const bool in_f16 = Level() == "v4fp16" && absl::StrContains(text, "y = f16[");
    const Tolerance tolerance = exact ? Tolerance{0, 0} : Tolerance{0.02, in_f16 ? 0.06 : 0.01};
    ExpectAsEvaluator(**module, arguments, Level(), threads, tolerance, text);
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

// Few rows by a B that lies along k: up to and past the rows that read it as it lies, sums that fill vectors and
// others.
TEST_P(Products, OfFewRows) {
  constexpr Types kFew[] = {{"f32", "f32", "f32"},   {"f64", "f64", "f64"}, {"f32", "bf16", "f32"},
                            {"bf16", "bf16", "f32"}, {"s8", "s8", "s32"},   {"s32", "s32", "s32"},
                            {"f16", "f16", "f16"}};
  int shift = 0;
  for (const Types& t : kFew)
    for (const int64_t m : {1, 3, 8, 12, 13})
      for (const int64_t k : {127, 200, 1030}) {
        const int64_t n = std::array<int64_t, 4>{1, 7, 33, 64}[static_cast<size_t>(shift++ % 4)];
        const std::string text = TextOf(t, DotCase{1 + shift % 2, m, n, k, shift % 3 == 0, true});
        Compare(text, t.c[0] == 's', 1 + shift % 2);
        if (shift % 5 == 0) Compare(WithBias(text, "f32"), false);
      }
}

// Few columns, with sums long enough that lanes go along k and shorter ones; runs that fill vectors and others.
// Rows where B is far away, and results that leave the caches (codegen/cpu/past_caches.h), at one of their levels.
TEST_P(Products, OfFarMatrices) {
  if (Level() == "v4") Compare(TextOf(Types{"f32", "f32", "f32"}, DotCase{1, 1024, 3200, 8, false, false}), false, 2);
  Compare(TextOf(Types{"f32", "f32", "f32"}, DotCase{1, 29, 1040, 300, false, false}), false, 2);
  Compare(TextOf(Types{"f32", "f32", "f32"}, DotCase{1, 24, 1040, 300, false, false}), false);
}

TEST_P(Products, OfFewColumns) {
  constexpr Types kFew[] = {
      {"f32", "f32", "f32"}, {"f64", "f64", "f64"}, {"f32", "bf16", "f32"}, {"f16", "f16", "f16"}};
  int shift = 0;
  for (const Types& t : kFew)
    for (const int64_t n : {4, 5, 8, 11, 12, 13})
      for (const int64_t k : {95, 420, 1030}) {
        const int64_t m = std::array<int64_t, 3>{5, 14, 41}[static_cast<size_t>(shift++ % 3)];
        const std::string text = TextOf(t, DotCase{1 + shift % 2, m, n, k, shift % 7 == 0, shift % 4 < 2});
        Compare(text, false, 1 + shift % 2);
        if (shift % 5 == 0) Compare(WithBias(text, "f32"), false);
      }
}

// A matrix and a vector: both layouts, several batches, strips that go together and rows that are asked for before.
TEST_P(Products, OfVectors) {
  constexpr DotCase kVectors[] = {
      {1, 1, 4500, 19, false, false}, {3, 1, 70, 33, false, false}, {2, 300, 1, 21, true, false},
      {1, 1, 2051, 29, false, true},  {2, 7, 1, 1100, false, true}, {1, 1, 2305, 493, false, false},
  };
  ForPairs(1, kVectors, [&](const std::string& text, bool exact) { Compare(text, exact, 2); });
  Compare(WithBias(TextOf({"bf16", "bf16", "bf16"}, kVectors[0]), "bf16"), false);
  Compare(WithBias(TextOf({"bf16", "bf16", "bf16"}, kVectors[2]), "f32"), false);
}

// Sums of the greatest products: what is summed in floats is taken out of them while it is exact. Results of few bits
// are what is left of the sums.
TEST_P(Products, OfGreatIntegers) {
  constexpr DotCase kCases[] = {
      {1, 60, 1, 1100, false, false}, {1, 1, 70, 1500, false, false}, {1, 33, 40, 3000, false, false},
      {2, 9, 3, 700, false, true},    {1, 4, 96, 5000, false, false}, {1, 50, 2, 256, false, false},
  };
  const auto greatest = [](Values& v) {
    for (Literal& x : v)
      for (int64_t k = 0; k < x.size(); ++k) {
        Element e;
        e.i = IsUnsigned(x.type()) ? 255 - k % 3 : -128 + k % 2;
        x.Set(k, e);
      }
  };
  for (const DotCase& d : kCases)
    for (const Types& t :
         {Types{"u8", "u8", "s32"}, {"s8", "s8", "s32"}, {"u8", "s8", "s32"}, {"u8", "u8", "u8"}, {"s8", "s8", "s16"}})
      Compare(TextOf(t, d), true, 2, kArgument, greatest);
}

// Where tiles multiply the parts of F16, or short sums are F16: blocks and what is left of them, sums in pieces, an
// epilogue, and numbers that have no parts.
TEST_P(Products, OfF16InParts) {
  constexpr DotCase kCases[] = {
      {1, 64, 64, 64, false, false}, {2, 70, 100, 130, false, true}, {1, 560, 65, 66, true, false},
      {1, 67, 70, 2100, true, true}, {1, 65, 150, 66, false, false}, {1, 64, 64, 63, false, false},
  };
  const auto unusual = [](Values& v) {
    const double inf = std::numeric_limits<double>::infinity();
    const auto put = [&](size_t array, int64_t at, double x) {
      Element e;
      e.re = x;
      v[array].Set(at, e);
    };
    put(0, 5, inf);
    put(0, 1000, -inf);
    put(0, 2001, std::numeric_limits<double>::quiet_NaN());
    put(1, 70, inf);
    for (int64_t k = 0; k < 60; ++k) put(1, 9 + 64 * k, k % 2 ? 0 : 6e-8);
  };
  for (const DotCase& d : kCases)
    for (const char* result : {"f16", "f32"}) {
      const std::string text = TextOf({"f16", "f16", result}, d);
      Compare(text, false, 2);
      Compare(text, false, 1, kArgument, unusual);
    }
  Compare(WithBias(TextOf({"f16", "f16", "f16"}, kCases[1]), "f32"), false, 1, kArgument, unusual);
}

// Products beyond the range of F16, whose sums are within it.
TEST_P(Products, OfF16ThatOverflowOnTheWay) {
  const auto cancelling = [](Values& v) {
    for (Literal& x : v)
      for (int64_t k = 0; k < x.size(); ++k) {
        Element e;
        e.re = &x == &v[0] && k % 2 ? -300 : 300;
        x.Set(k, e);
      }
    Element e;
    e.re = 301;
    v[0].Set(100, e);
  };
  for (const DotCase& d : {DotCase{1, 48, 70, 96, false, false}, DotCase{2, 40, 130, 1100, false, true}})
    Compare(TextOf({"f16", "f16", "f16"}, d), false, 1, kArgument, cancelling);
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

struct OrderCase {
  const char *labels, *input, *kernel, *result, *window;  // extents, and the window
  int groups;
};
constexpr OrderCase kOrders[] = {
    // Squares that fit and that do not, padding at either end, strides, holes in the window, negative padding.
    {"bf01_oi01->bf01", "2,32,9,32", "40,32,3,3", "2,40,9,32", "size=3x3 pad=1_1x1_1", 1},
    {"bf01_oi01->bf01", "2,21,9,37", "8,21,3,3", "2,8,5,20", "size=3x3 stride=2x2 pad=1_2x2_3", 1},
    {"bf01_01io->b01f", "1,19,7,23", "3,2,19,16", "1,4,17,16", "size=3x2 pad=1_0x-2_-3 rhs_dilate=2x1", 1},
    // Few features, and narrow lines.
    {"bf01_oi01->bf01", "2,3,20,21", "16,3,5,5", "2,16,10,10", "size=5x5 stride=2x2 pad=2_2x1_2", 1},
    {"bf01_01io->b01f", "2,40,3,3", "3,3,40,24", "2,3,3,24", "size=3x3 pad=1_1x1_1", 1},
    {"bf01_01io->b01f", "2,64,2,7", "2,3,64,24", "2,1,5,24", "size=2x3", 1},
    // One element of the input: products of pixels.
    {"bf01_oi01->bf01", "2,48,6,7", "33,48,1,1", "2,33,6,7", "size=1x1", 1},
    {"bf01_oi01->bf01", "2,24,7,18", "9,24,1,1", "2,9,4,9", "size=1x1 stride=2x2", 1},
    // Gradients of strided windows: a tap for each result, none a neighbour; more of them than fit on the stack.
    {"b01f_01io->b01f", "3,76,74,1", "36,35,1,24", "3,6,6,24", "size=36x35 rhs_dilate=2x2", 1},
    {"b01f_01io->b01f", "1,76,74,64", "36,35,64,8", "1,7,6,8", "size=36x35 pad=1_0x0_0 rhs_dilate=2x2", 1},
    // Groups, windows read backwards, holes in the input.
    {"bf01_oi01->bf01", "1,36,8,17", "24,12,3,3", "1,24,8,17", "size=3x3 pad=1_1x1_1", 3},
    {"bf01_01oi->b01f", "1,20,6,18", "3,3,8,20", "1,6,18,8", "size=3x3 pad=1_1x1_1 rhs_reversal=1x1", 1},
    {"bf01_01io->b01f", "1,20,5,17", "3,3,20,8", "1,9,33,8", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", 1},
    {"bf01_01io->b01f", "2,8,9,17", "3,3,1,8", "2,9,17,8", "size=3x3 pad=1_1x1_1", 8},
    // Other orders: images innermost, features between the spatial dimensions, gradients of kernels.
    {"f01b_01io->b01f", "18,6,7,5", "3,3,18,8", "5,4,5,8", "size=3x3", 1},
    {"0fb1_01io->b01f", "6,18,2,19", "3,3,18,8", "2,6,19,8", "size=3x3 pad=1_1x1_1", 1},
    {"1b0f_01io->b01f", "6,2,7,18", "3,3,18,8", "2,7,6,8", "size=3x3 pad=1_1x1_1", 1},
    {"fb01_io01->01bf", "17,12,8,18", "17,8,8,18", "3,3,12,8", "size=8x18 pad=1_1x1_1", 1},
    // Taps that only meet padding: on either side, at one end, of a window read backwards, with holes in the input.
    {"b01f_01io->b01f", "1,4,5,20", "3,3,20,24", "1,4,5,24", "size=3x3 pad=12_12x4_4 rhs_dilate=12x4", 1},
    {"bf01_oi01->bf01", "2,20,1,1", "24,20,3,3", "2,24,1,1", "size=3x3 pad=1_1x1_1", 1},
    {"bf01_oi01->bf01", "1,12,4,9", "24,4,3,3", "1,24,2,3",
     "size=3x3 stride=1x3 pad=0_4x7_3 rhs_dilate=3x5 rhs_reversal=1x1", 3},
    {"b0f_0io->b0f", "2,3,20", "4,20,8", "2,3,8", "size=4 stride=2 pad=9_3 lhs_dilate=2 rhs_dilate=4", 1},
    {"b0f_0io->b0f", "2,3,20", "2,20,8", "2,1,8", "size=2 pad=9_-5 rhs_dilate=6", 1},
    // One and three spatial dimensions.
    {"bf0_oi0->bf0", "2,20,50", "24,20,5", "2,24,50", "size=5 pad=2_2", 1},
    {"bf012_oi012->bf012", "2,18,4,5,20", "8,18,3,3,3", "2,8,4,5,20", "size=3x3x3 pad=1_1x1_1x1_1", 1},
};

std::string TextOf(const Types& t, const OrderCase& o) {
  return absl::StrCat("  x = ", t.a, "[", o.input, "] parameter(0)\n  y = ", t.b, "[", o.kernel,
                      "] parameter(1)\n  ROOT r = ", t.c, "[", o.result, "] convolution(x, y), window={", o.window,
                      "}, dim_labels=", o.labels, ", feature_group_count=", o.groups);
}

TEST_P(Products, OfInputsInAnyOrder) {
  const Types f32 = {"f32", "f32", "f32"};
  size_t next = static_cast<size_t>(GetParam());
  for (const OrderCase& o : kOrders) {
    Compare(TextOf(f32, o), false, 2);
    const Types& other = kTypes[next++ % std::size(kTypes)];
    Compare(TextOf(other, o), other.c[0] == 's');
  }
}

// The types that panels hold.
constexpr Types kPanelTypes[] = {
    {"f32", "f32", "f32"}, {"f64", "f64", "f64"}, {"bf16", "bf16", "f32"}, {"bf16", "bf16", "bf16"},
    {"s8", "s8", "s32"},   {"u8", "s8", "s32"},   {"u8", "u8", "s32"},
};

// Weights that a compile lays out as panels: extents around a panel's columns, few rows and many, long sums in pieces.
TEST_P(Products, OfConstantMatrices) {
  constexpr DotCase kCases[] = {
      {1, 2, 64, 64, false, false},   {1, 13, 65, 40, false, true},    {1, 40, 10, 300, false, false},
      {3, 30, 112, 36, true, true},   {1, 130, 208, 68, false, false}, {1, 20, 352, 1100, false, true},
      {1, 70, 96, 2052, true, false}, {1, 300, 48, 64, false, true},   {1, 24, 80, 4160, false, false},
      {1, 40, 3, 600, false, false},
  };
  size_t next = 0;
  for (const Types& t : kPanelTypes)
    for (const DotCase& d : kCases)
      if (++next % 3 == 0) Compare(TextOf(t, d), t.c[0] == 's', 2, kConstant);
  for (const DotCase& d : kCases) Compare(WithBias(TextOf({"f32", "f32", "f32"}, d), "f32"), false, 1, kConstant);
}

TEST_P(Products, OfConstantWindows) {
  constexpr ConvolutionCase kCases[] = {
      {64, 128, 3, 1, 1, 1, 1, 1, false, true}, {16, 33, 1, 1, 1, 0, 1, 1, false, false},
      {3, 70, 5, 1, 2, 2, 1, 1, false, false},  {12, 64, 3, 2, 1, 1, 2, 1, false, false},
      {26, 24, 2, 1, 1, 1, 1, 2, true, true},   {600, 48, 1, 1, 1, 0, 1, 1, false, false},
      {130, 3, 3, 1, 1, 1, 1, 1, false, false},
  };
  size_t next = 0;
  for (const Types& t : kPanelTypes)
    for (const ConvolutionCase& v : kCases)
      if (++next % 3 == 0) Compare(TextOf(t, v), t.c[0] == 's', 2, kConstant);
  for (const ConvolutionCase& v : kCases)
    Compare(WithBias(TextOf({"f32", "f32", "f32"}, v), "f32"), false, 1, kConstant);
  for (const OrderCase& o : kOrders) Compare(TextOf({"f32", "f32", "f32"}, o), false, 2, kConstant);
}

INSTANTIATE_TEST_SUITE_P(Levels, Products, testing::Range(0, static_cast<int>(KILN_LEVELS)),
                         [](const auto& info) { return std::string(kNames[info.param]); });

}  // namespace
}  // namespace kiln
