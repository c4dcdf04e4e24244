// Many short rows, and long ones, sorted at every CPU level that this machine runs: along all dimensions, alone and
// with places and other arrays, by elements as they are and with one zero and one NaN as JAX has them, where some rows
// have several of these. Lengths around blocks, powers of two and those from which sorts take other ways, rows that
// fill groups and that do not, long keys that differ in their lowest bits alone. Against the evaluator, bit for bit:
// equal keys keep their order.
#include <cmath>
#include <cstring>

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
    {"f32", {8191}, 0, false, false, true},     {"s32", {8192}, 0, true, false, true},
    {"f64", {2, 64}, 1, false, true, true},     {"f64", {300, 3}, 0, true, false, true},
    {"f64", {8192}, 0, false, true, true},      {"f64", {3, 500}, 1, true, true, false},
    {"s64", {3, 64}, 1, false, false, true},    {"s64", {8191}, 0, true, false, true},
    {"s64", {8300}, 0, false, false, false},    {"u64", {2, 700, 2}, 1, false, false, true},
    {"u64", {63}, 0, true, false, true},        {"f16", {2, 900}, 1, true, false, true},
};
// Words of 8 bytes no longer stay in a core's cache, then those of 4.
const Case kFar[] = {{"s64", {131073}, 0, false, false, true}, {"s32", {262144}, 0, false, false, false}};

class SortRows : public testing::TestWithParam<int> {};

// What is compared of `a` and `b`, as ca and cb.
std::string Compared(const Case& c) {
  if (!c.one_zero) return "";
  const std::string& t = c.type;
  std::string text = absl::StrCat(" zero = ", t, "[] constant(0)\n nan = ", t, "[] constant(nan)\n");
  for (const char* x : {"a", "b"})
    absl::StrAppend(&text, " z", x, " = pred[] compare(", x, ", zero), direction=EQ\n y", x, " = ", t, "[] select(z", x,
                    ", zero, ", x, ")\n n", x, " = pred[] compare(", x, ", ", x, "), direction=NE\n c", x, " = ", t,
                    "[] select(n", x, ", nan, y", x, ")\n");
  return text;
}

// Elements that share keys in the first half, so that other rows have none; of 64 bits in the second half such as have
// their 32 uppermost bits from few.
void MakeMeet(Literal& x, bool is_float, int64_t bytes) {
  const auto set = [&](int64_t at, double value) { x.Set(at, Literal::Of(x.type(), value).Get(0)); };
  for (int64_t at = 0; at < x.size() / 2; ++at)
    if (at % 3 == 0) set(at, static_cast<double>(at * 7 % 5));
  if (bytes == 8)
    for (int64_t at = x.size() / 2; at < x.size(); ++at) {
      const auto high = static_cast<double>(at % 5 + 1), low = static_cast<double>(at * 37 % 97);
      if (at % 50 != 0) set(at, is_float ? high * (1 + std::ldexp(low, -52)) : std::ldexp(high, 45) + low);
    }
  if (!is_float) {
    const bool is_signed = IsSigned(x.type());
    for (int64_t at = 1; bytes >= 4 && at < x.size() / 2; at += 11)
      set(at, std::ldexp(at % 2 && is_signed ? -1 : 1, static_cast<int>(8 * bytes) - (at % 2 ? 1 : 2)));
    return;
  }
  for (int64_t at = 0; at < x.size() / 2; at += 10) {
    set(at, at % 4 == 0 ? -0.0 : -std::nan(""));
    set(at + 1, at % 4 == 0 ? HUGE_VAL : -HUGE_VAL);
    // NaNs that differ in their lower bits.
    const uint64_t nan = (bytes == 8 ? 0x7ff8000000000000u : 0x7fc00000u) | static_cast<uint64_t>(at % 7);
    if (bytes >= 4) std::memcpy(x.mutable_data() + (at + 3) * bytes, &nan, static_cast<size_t>(bytes));
  }
}

void ExpectSorted(const Case& c, const std::string& level) {
  const bool is_float = c.type[0] == 'f' || c.type[0] == 'b';
  const std::string dims = absl::StrCat("[", absl::StrJoin(c.dims, ","), "]"), array = c.type + dims;
  const std::string bits = absl::StrCat("u", c.type == "bf16" ? "16" : c.type.substr(1)) + dims;
  const std::string order =
      absl::StrCat(" ROOT r = pred[] compare(", c.one_zero ? "ca, cb" : "a, b",
                   "), direction=", c.descending ? "GT" : "LT", is_float ? ", type=TOTALORDER" : "", "\n}\n");
  const std::string scalars = absl::StrCat(" a = ", c.type, "[] parameter(0)\n b = ", c.type, "[] parameter(1)\n");
  const std::string others =
      " v = s32[] parameter(2)\n w = s32[] parameter(3)\n t = u8[] parameter(4)\n u = u8[] "
      "parameter(5)\n";
  const std::string along = absl::StrCat("dimensions={", c.along, "}, is_stable=true, to_apply=");
  const std::string text = absl::StrCat(
      "HloModule m\none {\n", scalars, Compared(c), order, "three {\n", scalars, others, Compared(c), order,
      "ENTRY e {\n x = ", array, " parameter(0)\n i = s32", dims, " iota(), iota_dimension=", c.along, "\n o = u8",
      dims, " convert(i)\n r = ", array, " sort(x), ", along, "one\n p = (", array, ", s32", dims, ", u8", dims,
      ") sort(x, i, o), ", along, "three\n q = ", array, " get-tuple-element(p), index=0\n g = s32", dims,
      " get-tuple-element(p), index=1\n h = u8", dims, " get-tuple-element(p), index=2\n rb = ", bits,
      " bitcast-convert(r)\n qb = ", bits, " bitcast-convert(q)\n ROOT t = (", bits, ", ", bits, ", s32", dims, ", u8",
      dims, ") tuple(rb, qb, g, h)\n}\n");
  auto module = ParseHlo(text, "t.hlo");
  ASSERT_TRUE(module.ok()) << module.status() << text;
  std::vector<Values> arguments = {SeededValues(**module, 3)};
  Literal& x = arguments[0][0];
  if (c.meet) MakeMeet(x, is_float, x.byte_size() / x.size());
  ExpectAsEvaluator(**module, arguments, level, 2, {0, 0}, text);
}

TEST_P(SortRows, AreThoseOfTheEvaluator) {
  if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  for (const Case& c : kCases) ExpectSorted(c, kNames[GetParam()]);
}

TEST(SortFar, RowsAreThoseOfTheEvaluator) {
  for (const Case& c : kFar) ExpectSorted(c, "native");
}

INSTANTIATE_TEST_SUITE_P(Levels, SortRows, testing::Range(0, static_cast<int>(KILN_LEVELS)),
                         [](const auto& i) { return std::string(kNames[i.param]); });

}  // namespace
}  // namespace kiln
