// Sorts on GPUs, every access of them watched, against the evaluator: rows that share a tile, fill one and take
// several, along every dimension, of few values so that many are equal, beside arrays that no comparator looks at, in
// place and not, and under comparators that are the order of no key. And how many launches they are.
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/gpu/both_backends.h"

namespace kiln {
namespace {

Literal Draws(const Ints& dims, int64_t values) {
  Literal l(Shape::Array(PrimitiveType::S32, dims));
  std::mt19937 random(5);
  for (int64_t k = 0; k < l.size(); ++k) {
    Element e;
    e.i = static_cast<int64_t>(random()) % values - values / 2;
    l.Set(k, e);
  }
  return l;
}

constexpr char kByFirst[] = " ROOT r = pred[] compare(a0, b0), direction=LT\n";

// The results of sorting, along `dim`, arrays of `types` that are made of draws: the first of them as they are.
struct Program {
  std::vector<std::string> types;
  Ints dims;
  int64_t dim;
  std::string less = kByFirst;

  std::string Text() const {
    const std::string of = absl::StrCat("[", absl::StrJoin(dims, ","), "]");
    std::string text = "HloModule m\nless {\n", made, names, shapes;
    for (size_t k = 0; k < types.size(); ++k) {
      absl::StrAppend(&text, " a", k, " = ", types[k], "[] parameter(", 2 * k, ")\n b", k, " = ", types[k],
                      "[] parameter(", 2 * k + 1, ")\n");
      absl::StrAppend(&made, " f", k, " = s32[] constant(", 2 * k + 1, ")\n m", k, " = s32", of, " broadcast(f", k,
                      "), dimensions={}\n p", k, " = s32", of, " multiply(x, m", k, ")\n q", k, " = s32", of, " add(p",
                      k, ", i)\n o", k, " = ", types[k], of, " convert(", k ? "q" : "x", k ? absl::StrCat(k) : "",
                      ")\n");
      absl::StrAppend(&names, k ? ", o" : "o", k);
      absl::StrAppend(&shapes, k ? ", " : "", types[k], of);
    }
    absl::StrAppend(&text, less, "}\nENTRY e {\n x = s32", of, " parameter(0)\n i = s32", of,
                    " iota(), iota_dimension=", dim, "\n", made,
                    " ROOT s = ", types.size() > 1 ? absl::StrCat("(", shapes, ")") : shapes, " sort(", names,
                    "), dimensions={", dim, "}, is_stable=true, to_apply=less\n}\n");
    return text;
  }
};

void ExpectSorted(const Program& p, int64_t values) {
  const std::string text = p.Text();
  const auto results = RunOnBoth(text, Draws(p.dims, values));
  ASSERT_EQ(results[1].size(), p.types.size());
  for (size_t k = 0; k < p.types.size(); ++k)
    EXPECT_TRUE(results[0][k] == results[1][k]) << "result " << k << " of\n" << text;
}

TEST(GpuSort, RowsOfEveryLength) {
  for (const int64_t n : {1, 2, 3, 31, 64, 65, 1000, 4095, 4096, 4097, 8193, 13000})
    for (const auto& types : std::vector<std::vector<std::string>>{{"s32"}, {"s8", "f32"}, {"s16", "pred", "c64"}})
      ExpectSorted({types, {2, n}, 1}, 50);
}

TEST(GpuSort, AlongEveryDimension) {
  ExpectSorted({{"u8", "s32"}, {300, 40}, 0}, 9);
  ExpectSorted({{"u8", "s32"}, {3, 70, 11}, 1}, 9);
  ExpectSorted({{"f32", "bf16"}, {2, 5000, 3}, 1}, 1000);
  ExpectSorted({{"f64", "u8"}, {5000, 5}, 1}, 9);
  ExpectSorted({{"bf16", "f16"}, {3, 1, 9}, 1}, 9);
  ExpectSorted({{"s64"}, {9}, 0}, 9);
}

// Several keys, keys that are functions of elements, and what is no key at all.
TEST(GpuSort, Comparators) {
  const std::string by_two =
      " f = pred[] compare(a0, b0), direction=GT\n e = pred[] compare(a0, b0), direction=EQ\n s = pred[] compare(a1, "
      "b1), "
      "direction=LT\n t = pred[] and(e, s)\n ROOT r = pred[] or(f, t)\n";
  const std::string by_sum =
      " a = f32[] add(a0, a1)\n b = f32[] add(b0, b1)\n ROOT r = pred[] compare(a, b), direction=LT\n";
  const std::string by_size = " a = f32[] abs(a0)\n b = f32[] abs(b0)\n ROOT r = pred[] compare(a, b), direction=GT\n";
  for (const int64_t n : {100, 9000}) {
    ExpectSorted({{"s8", "u8", "s32"}, {2, n}, 1, by_two}, 9);
    ExpectSorted({{"f32", "f32"}, {2, n}, 1, by_sum}, 30);
    ExpectSorted({{"f32", "s64"}, {2, n}, 1, by_size}, 30);
  }
}

// Loops before a sort and behind it are part of its kernel, and what nobody reads is not written: the places of a
// descending order, and keys that are computed, sorted and computed back.
TEST(GpuSort, LoopsAround) {
  for (const int64_t n : {70, 5000, 9000, 20000}) {
    const std::string s32 = absl::StrCat("s32[2,", n, "]"), f32 = absl::StrCat("f32[2,", n, "]");
    const std::string bf16 = absl::StrCat("bf16[2,", n, "]");
    const std::string text = absl::StrCat(
        "HloModule m\nup {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), "
        "direction=LT\n}\nby {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n v = s32[] parameter(2)\n w = s32[] "
        "parameter(3)\n ROOT r = pred[] compare(a, b), direction=GT\n}\nENTRY e {\n x = ",
        s32, " parameter(0)\n f = ", f32, " convert(x)\n m = ", f32, " negate(f)\n s = ", f32,
        " sort(m), dimensions={1}, is_stable=true, to_apply=up\n d = ", f32, " negate(s)\n h = ", bf16,
        " convert(d)\n i = ", s32, " iota(), iota_dimension=1\n y = ", s32, " abs(x)\n p = (", s32, ", ", s32,
        ") sort(y, i), dimensions={1}, is_stable=true, to_apply=by\n o = ", s32,
        " get-tuple-element(p), index=1\n g = ", f32, " convert(o)\n ROOT t = (", bf16, ", ", f32,
        ") tuple(h, g)\n}\n");
    const Literal x = Draws({2, n}, 500);
    const auto results = RunOnBoth(text, x);
    ASSERT_EQ(results[1].size(), 2U);
    for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(results[0][k] == results[1][k]) << "result " << k << " of\n" << text;
    EXPECT_EQ(GpuSteps(text), n > 4096 ? 4 : 2);
  }
}

// NaNs, of which a comparator says nothing, go last; what is around them is in order.
TEST(GpuSort, NaNsWithoutAPlace) {
  for (const int64_t n : {90, 9000}) {
    const std::string f32 = absl::StrCat("f32[", n, "]"), s32 = absl::StrCat("s32[", n, "]");
    const std::string text = absl::StrCat(
        "HloModule m\nless {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), "
        "direction=GT\n}\nENTRY e {\n x = ",
        s32, " parameter(0)\n f = ", f32, " convert(x)\n r = ", f32, " sqrt(f)\n ROOT s = ", f32,
        " sort(r), dimensions={0}, is_stable=true, to_apply=less\n}\n");
    const auto results = RunOnBoth(text, Draws({n}, 40));
    ASSERT_EQ(results[1].size(), 1U);
    const Literal& got = results[1][0];
    int64_t nans = 0;
    for (int64_t k = 0; k < n; ++k) nans += std::isnan(got.Get(k).re);
    ASSERT_GT(nans, 0);
    for (int64_t k = 0; k < n; ++k) {
      EXPECT_EQ(std::isnan(got.Get(k).re), k >= n - nans);
      if (k > 0 && k < n - nans) EXPECT_GE(got.Get(k - 1).re, got.Get(k).re);
    }
  }
}

// A comparator that is no order still ends, with elements of the array at every place.
TEST(GpuSort, NoOrder) {
  const std::string odd =
      " a = s32[] multiply(a0, b0)\n one = s32[] constant(1)\n c = s32[] and(a, one)\n zero = s32[] constant(0)\n ROOT "
      "r "
      "= pred[] compare(c, zero), direction=EQ\n";
  const Literal x = Draws({9000}, 1000);
  std::set<int64_t> values;
  for (int64_t k = 0; k < x.size(); ++k) values.insert(x.Get(k).i);
  auto module = ParseHlo(Program{{"s32"}, {9000}, 0, odd}.Text(), "m.hlo");
  ASSERT_TRUE(module.ok()) << module.status();
  RunOptions run;
  run.backend = "gpu-emulated";
  const auto got = RunModule(std::move(*module), {x}, {}, run);
  ASSERT_TRUE(got.ok()) << got.status();
  for (int64_t k = 0; k < x.size(); ++k) EXPECT_TRUE(values.count(got->results[0].Get(k).i)) << k;
}

TEST(GpuSort, OneLaunchAndOneForCounters) {
  for (const auto& [n, launches] : {std::pair<int64_t, int64_t>{64, 1}, {4096, 1}, {4097, 2}, {1 << 20, 2}}) {
    const std::string text = absl::StrCat(
        "HloModule m\nless {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), "
        "direction=LT, type=TOTALORDER\n}\nENTRY e {\n x = f32[",
        n, "] parameter(0)\n ROOT s = f32[", n, "] sort(x), dimensions={0}, is_stable=true, to_apply=less\n}\n");
    EXPECT_EQ(GpuSteps(text), launches) << n;
  }
}

}  // namespace
}  // namespace kiln
