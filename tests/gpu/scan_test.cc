// Running reductions, every access of the kernels watched, against the reference evaluator: lines along every
// dimension, shorter and longer than a block's piece, from either end, and a reducer that minds the order of its
// arguments. Values are small integers, so that every order of combining gives the same bits.
#include "absl/strings/str_cat.h"
#include "tests/gpu/both_backends.h"

namespace kiln {
namespace {

void Compare(PrimitiveType t, const Ints& dims, int64_t dim, bool backward, const char* reducer) {
  const std::string name(TextOf(t)), shape = Shape::Array(t, dims).ToString(false);
  std::string size, pad;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    const bool here = d == dim;
    const int64_t n = here ? dims[static_cast<size_t>(d)] : 1;
    absl::StrAppend(&size, d ? "x" : "", n);
    absl::StrAppend(&pad, d ? "x" : "", backward ? 0 : n - 1, "_", backward ? n - 1 : 0);
  }
  const std::string zero = t == PrimitiveType::Pred ? "false" : IsComplex(t) ? "(0,0)" : "0";
  const std::string program = absl::StrCat(
      "HloModule m\nf {\n  a = ", name, "[] parameter(0)\n  b = ", name, "[] parameter(1)\n  ROOT r = ", name, "[] ",
      reducer, "\n}\nENTRY e {\n  x = ", shape, " parameter(0)\n  z = ", name, "[] constant(", zero,
      ")\n  ROOT w = ", shape, " reduce-window(x, z), window={size=", size, " pad=", pad, "}, to_apply=f\n}\n");
  Literal x(Shape::Array(t, dims));
  for (int64_t k = 0; k < x.size(); ++k) {
    Element e;
    e.i = t == PrimitiveType::Pred ? k % 97 == 5 : k % 5 - 2;
    e.re = static_cast<double>(k * 7 % 5 - 2);
    e.im = IsComplex(t) ? static_cast<double>(k % 3 - 1) : 0;
    x.Set(k, e);
  }
  const auto results = RunOnBoth(program, x);
  ASSERT_EQ(results[1].size(), 1U);
  for (int64_t k = 0; k < x.size(); ++k) {
    const Element want = results[0][0].Get(k), got = results[1][0].Get(k);
    ASSERT_TRUE(want.i == got.i && want.re == got.re && want.im == got.im)
        << program << "element " << k << ": " << want.re << "/" << want.i << " and " << got.re << "/" << got.i;
  }
}

TEST(Scan, EveryTypeAlongEveryDimension) {
  using P = PrimitiveType;
  for (const P t : {P::F32, P::F64, P::S32, P::S8, P::U64, P::C64})
    for (const int64_t dim : {0, 1, 2})
      for (const bool backward : {false, true}) Compare(t, {3, 40, 37}, dim, backward, "add(a, b)");
  for (const bool backward : {false, true}) {
    Compare(P::Pred, {3, 140}, 1, backward, "or(a, b)");
    Compare(P::BF16, {3, 140}, 1, backward, "maximum(a, b)");
    Compare(P::F16, {3, 140}, 0, backward, "minimum(a, b)");
  }
}

TEST(Scan, LinesOfEveryLength) {
  for (const int64_t n : {2, 31, 32, 128, 129, 1023, 1024, 1025, 2500})
    Compare(PrimitiveType::S32, {2, n}, 1, false, "add(a, b)");
  Compare(PrimitiveType::S32, {4200}, 0, false, "add(a, b)");  // split first
  Compare(PrimitiveType::F32, {1, 2, 1500, 1}, 2, true, "add(a, b)");
}

// Independent ones, of rows and of columns, are one launch, beside loops and sums.
TEST(Scan, SeveralInOneLaunch) {
  const std::string text = R"(HloModule m
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
more { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] maximum(a, b) }
ENTRY e {
  x = s32[7,1300] parameter(0)
  zero = s32[] constant(0)
  least = s32[] constant(-2147483648)
  rows = s32[7,1300] reduce-window(x, zero), window={size=1x1300 pad=0_0x1299_0}, to_apply=add
  back = s32[7,1300] reduce-window(x, least), window={size=1x1300 pad=0_0x0_1299}, to_apply=more
  columns = s32[7,1300] reduce-window(x, zero), window={size=7x1 pad=6_0x0_0}, to_apply=add
  least3 = s32[7,1300] reduce-window(x, least), window={size=1x3 pad=0_0x1_1}, to_apply=more
  sum = s32[7] reduce(x, zero), dimensions={1}, to_apply=add
  ROOT t = (s32[7,1300], s32[7,1300], s32[7,1300], s32[7,1300], s32[7]) tuple(rows, back, columns, least3, sum)
})";
  Literal x(Shape::Array(PrimitiveType::S32, {7, 1300}));
  for (int64_t k = 0; k < x.size(); ++k) {
    Element e;
    e.i = k * 7 % 31 - 15;
    x.Set(k, e);
  }
  const auto results = RunOnBoth(text, x);
  ASSERT_EQ(results[1].size(), 5U);
  for (size_t k = 0; k < 5; ++k) EXPECT_TRUE(results[0][k] == results[1][k]) << k;
  EXPECT_EQ(GpuSteps(text), 1);
}

TEST(Scan, TheEarlierElementComesFirst) {
  // Of the window's elements, reduced in order, the last one remains.
  Compare(PrimitiveType::S32, {2, 1500}, 1, false, "copy(b)");
}

}  // namespace
}  // namespace kiln
