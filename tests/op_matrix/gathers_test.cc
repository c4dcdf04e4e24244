// Elements from places apart, at every CPU level that this machine runs: columns by number, of tables that registers
// hold and of longer ones, rows that are no vectors, small matrices that are turned or multiplied, and binary searches.
// Against the evaluator; what only moves has the same bits.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/abi.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

constexpr const char* kNames[KILN_LEVELS] = KILN_CPU_LEVELS;

class Gathers : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!x86::MachineRuns(kNames[GetParam()])) GTEST_SKIP() << "this machine does not run " << kNames[GetParam()];
  }

  // Integers are numbers of places from a little before the first to a little behind `places`.
  static void Expect(const std::string& text, int64_t places, const Tolerance& tolerance = {0, 0}) {
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status() << text;
    std::vector<Values> arguments = {SeededValues(**module, 5)};
    for (Literal& x : arguments[0])
      if (x.type() == PrimitiveType::S32 || x.type() == PrimitiveType::U32 || x.type() == PrimitiveType::S64)
        for (int64_t k = 0; k < x.size(); ++k) {
          const int64_t at = k * 7919 % (places + 4) - (IsSigned(x.type()) ? 2 : 0);
          x.Set(k, Literal::Of(x.type(), static_cast<double>(at)).Get(0));
        }
    ExpectAsEvaluator(**module, arguments, kNames[GetParam()], 2, tolerance, text);
  }
};

TEST_P(Gathers, TablesOfAnyLength) {
  for (const char* type : {"f32", "s32", "f64", "u8", "bf16", "c64"})
    for (const char* index : {"s32", "u32", "s64"})
      for (int64_t n : {5, 16, 17, 64, 65, 128, 129, 1000}) {
        if (n > 17 && std::string(index) != "s32" && std::string(type) != "f32") continue;
        Expect(absl::StrCat("HloModule m\nENTRY e {\n t = ", type, "[", n, "] parameter(0)\n i = ", index,
                            "[203] parameter(1)\n ROOT r = ", type,
                            "[203] gather(t, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
                            "index_vector_dim=1, slice_sizes={1}\n}\n"),
               n);
      }
}

TEST_P(Gathers, ColumnsByNumber) {
  for (const char* type : {"f32", "f64", "s8", "bf16"})
    for (int64_t n : {9, 40, 300}) {
      Expect(absl::StrCat("HloModule m\nENTRY e {\n x = ", type, "[21,", n, "] parameter(0)\n i = s32[", n + 3,
                          ",1] parameter(1)\n ROOT r = ", type, "[21,", n + 3,
                          "] gather(x, i), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, "
                          "index_vector_dim=1, slice_sizes={21,1}\n}\n"),
             n);
      Expect(absl::StrCat("HloModule m\nENTRY e {\n x = ", type, "[21,", n, "] parameter(0)\n i = s32[21,", n,
                          ",1] parameter(1)\n ROOT r = ", type, "[21,", n,
                          "] gather(x, i), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
                          "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, "
                          "slice_sizes={1,1}\n}\n"),
             n);
    }
}

// Sums of some elements of each row, which lie at even distances.
TEST_P(Gathers, ElementsOfRows) {
  for (const char* type : {"f32", "f64", "s32", "s64", "f16"})
    for (int64_t row : {3, 5, 7, 9, 12, 16, 17, 40}) {
      std::string text = absl::StrCat("HloModule m\nENTRY e {\n x = ", type, "[77,", row, "] parameter(0)\n");
      const int64_t taken = std::min<int64_t>(row, 11);
      for (int64_t k = 0; k < taken; ++k)
        absl::StrAppend(&text, " s", k, " = ", type, "[77,1] slice(x), slice={[0:77], [", row - taken + k, ":",
                        row - taken + k + 1, "]}\n m", k, " = ", type, "[77,1] ", k ? "maximum(m" : "add(s",
                        k ? absl::StrCat(k - 1) : "0", ", s", k, ")\n");
      Expect(absl::StrCat(text, " ROOT r = ", type, "[77,1] negate(m", taken - 1, ")\n}\n"), 50);
    }
}

// A number for each of few rows that a vector takes together: where the rows lie is known, of the numbers some bits
// are.
TEST_P(Gathers, OneOfEachOfFewRows) {
  for (int64_t n : {16, 64, 100})
    Expect(absl::StrCat("HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n",
                        "ENTRY e {\n x = f32[4,8,", n, "] parameter(0)\n i = s32[4,8] parameter(1)\n",
                        " w = f32[4,8] parameter(2)\n j = s32[4,8,1,1] reshape(i)\n g = f32[4,8,1] gather(x, j), ",
                        "offset_dims={}, collapsed_slice_dims={2}, operand_batching_dims={0,1}, ",
                        "start_indices_batching_dims={0,1}, start_index_map={2}, index_vector_dim=3, ",
                        "slice_sizes={1,1,1}\n h = f32[4,8] reshape(g)\n p = f32[4,8] multiply(h, w)\n",
                        " z = f32[] constant(0)\n ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=add\n}\n"),
           n, {1e-5, 1e-5});
}

TEST_P(Gathers, SmallMatricesAreTurned) {
  for (const char* type : {"f32", "f64", "s32", "bf16"})
    for (const auto& [rows, columns] : {std::pair{2, 2}, {3, 3}, {4, 4}, {2, 5}, {5, 3}, {4, 5}})
      for (int64_t n : {3, 16, 83})
        Expect(
            absl::StrCat("HloModule m\nENTRY e {\n x = ", type, "[", n, ",", rows, ",", columns,
                         "] parameter(0)\n y = ", type, "[", n, ",", columns, ",", rows, "] parameter(1)\n t = ", type,
                         "[", n, ",", columns, ",", rows, "] transpose(x), dimensions={0,2,1}\n ROOT r = ", type, "[",
                         n, ",", columns, ",", rows, "] maximum(t, y)\n}\n"),
            9);
}

TEST_P(Gathers, SmallMatricesAreMultiplied) {
  const Tolerance rounds{1e-5, 1e-6};
  for (const char* type : {"f32", "f64"})
    for (const auto& [m, n, k] : {std::tuple{2, 2, 2}, {3, 3, 3}, {4, 4, 4}, {2, 8, 3}, {3, 4, 1}})
      Expect(absl::StrCat("HloModule m\nENTRY e {\n a = ", type, "[131,", m, ",", k, "] parameter(0)\n b = ", type,
                          "[131,", n, ",", k, "] parameter(1)\n ROOT r = ", type, "[131,", m, ",", n,
                          "] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                          "rhs_contracting_dims={2}\n}\n"),
             9, rounds);
}

// By halves, as often as the logarithm of the array's length says.
TEST_P(Gathers, Searches) {
  for (const auto& [n, steps] : {std::pair{6, 3}, {33, 6}, {200, 8}, {3000, 12}}) {
    const std::string state = absl::StrCat("(s32[], u32[301], u32[301], f32[", n, "], f32[301])");
    Expect(
        absl::StrCat("HloModule m\nbody {\n p = ", state,
                     " parameter(0)\n i = s32[] get-tuple-element(p), index=0\n low = u32[301] get-tuple-element(p), "
                     "index=1\n high = u32[301] get-tuple-element(p), index=2\n t = f32[",
                     n,
                     "] get-tuple-element(p), index=3\n x = f32[301] get-tuple-element(p), index=4\n far = u32[301] "
                     "subtract(high, low)\n one = u32[] constant(1)\n ones = u32[301] broadcast(one), dimensions={}\n "
                     "half = u32[301] shift-right-logical(far, ones)\n mid = u32[301] add(low, half)\n v = f32[301] "
                     "gather(t, mid), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
                     "index_vector_dim=1, slice_sizes={1}\n left = pred[301] compare(x, v), direction=LE\n nl = "
                     "u32[301] select(left, low, mid)\n nh = u32[301] select(left, mid, high)\n step = s32[] "
                     "constant(1)\n ni = s32[] add(i, step)\n ROOT r = ",
                     state, " tuple(ni, nl, nh, t, x)\n}\ncondition {\n p = ", state,
                     " parameter(0)\n i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(", steps,
                     ")\n ROOT c = pred[] compare(i, n), direction=LT\n}\nENTRY e {\n t = f32[", n,
                     "] parameter(0)\n x = f32[301] parameter(1)\n zero = s32[] constant(0)\n first = u32[] "
                     "constant(0)\n last = u32[] constant(",
                     n,
                     ")\n low = u32[301] broadcast(first), dimensions={}\n high = u32[301] broadcast(last), "
                     "dimensions={}\n init = ",
                     state, " tuple(zero, low, high, t, x)\n w = ", state,
                     " while(init), condition=condition, body=body\n l = u32[301] get-tuple-element(w), index=1\n h = "
                     "u32[301] get-tuple-element(w), index=2\n ROOT r = u32[301] add(l, h)\n}\n"),
        n);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Gathers, testing::Range(0, static_cast<int>(KILN_LEVELS)),
                         [](const auto& i) { return std::string(kNames[i.param]); });

}  // namespace
}  // namespace kiln
