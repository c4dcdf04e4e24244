// Products on both sides of a softmax or norm as one kernel: strips that are whole and that are not, several batches,
// masks of columns and of rows, operands of either order, every type of floats. Against the evaluator.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "aot/planning.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

struct Case {
  int64_t batch, m, k, n, d;
  bool k_first, n_first;  // the order of the second operands: [k, n] or [n, k], [n, d] or [d, n]
};

constexpr Case kCases[] = {
    {1, 300, 16, 200, 24, false, true},  // strips, the last of them short
    {3, 61, 24, 77, 40, false, true},    // a batch is a strip
    {2, 5, 8, 2000, 16, true, true},     // few rows
    {1, 130, 7, 1500, 3, true, false},   // strips of the fewest rows
    {4, 33, 32, 32, 32, false, false},
};

// `rows`: what is made of scores `s`, as %r; functions max and sum of two numbers are there.
std::string Text(const Case& c, const std::string& type, const std::string& rows) {
  const char* text =
      "HloModule m\nmax {\n a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT m = $T[] maximum(a, b)\n}\n"
      "sum {\n a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT m = $T[] add(a, b)\n}\n"
      "ENTRY e {\n q = $T[$B,$M,$K] parameter(0)\n k = $T[$X] parameter(1)\n v = $T[$Y] parameter(2)\n"
      " mask = pred[$N] parameter(3)\n"
      " s = $T[$B,$M,$N] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
      "rhs_contracting_dims={$C}\n zero = $T[] constant(0)\n$R"
      " ROOT o = $T[$B,$M,$D] dot(r, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
      "rhs_contracting_dims={$E}\n}\n";
  return absl::StrReplaceAll(absl::StrReplaceAll(text, {{"$R", rows}}), {{"$T", type},
                                                                         {"$X", c.k_first ? "$B,$K,$N" : "$B,$N,$K"},
                                                                         {"$Y", c.n_first ? "$B,$N,$D" : "$B,$D,$N"},
                                                                         {"$C", c.k_first ? "1" : "2"},
                                                                         {"$E", c.n_first ? "1" : "2"}});
}

std::string WithExtents(const std::string& text, const Case& c) {
  return absl::StrReplaceAll(text, {{"$B", absl::StrCat(c.batch)},
                                    {"$M", absl::StrCat(c.m)},
                                    {"$K", absl::StrCat(c.k)},
                                    {"$N", absl::StrCat(c.n)},
                                    {"$D", absl::StrCat(c.d)}});
}

// A softmax of columns that are not masked and not right of the diagonal.
constexpr char kSoftmax[] =
    " low = $T[] constant(-1000)\n lows = $T[$B,$M,$N] broadcast(low), dimensions={}\n"
    " masks = pred[$B,$M,$N] broadcast(mask), dimensions={2}\n"
    " row = s32[$B,$M,$N] iota(), iota_dimension=1\n column = s32[$B,$M,$N] iota(), iota_dimension=2\n"
    " before = pred[$B,$M,$N] compare(column, row), direction=LE\n both = pred[$B,$M,$N] or(masks, before)\n"
    " x = $T[$B,$M,$N] select(both, s, lows)\n"
    " t = $T[$B,$M] reduce(x, low), dimensions={2}, to_apply=max\n u = $T[$B,$M,$N] broadcast(t), dimensions={0,1}\n"
    " y = $T[$B,$M,$N] subtract(x, u)\n e = $T[$B,$M,$N] exponential(y)\n"
    " f = $T[$B,$M] reduce(e, zero), dimensions={2}, to_apply=sum\n g = $T[$B,$M,$N] broadcast(f), dimensions={0,1}\n"
    " r = $T[$B,$M,$N] divide(e, g)\n";

// Rows by their longest element.
constexpr char kNorm[] =
    " z = $T[$B,$M,$N] multiply(s, s)\n t = $T[$B,$M] reduce(z, zero), dimensions={2}, to_apply=max\n"
    " one = $T[] constant(1)\n ones = $T[$B,$M] broadcast(one), dimensions={}\n w = $T[$B,$M] add(t, ones)\n"
    " u = $T[$B,$M,$N] broadcast(w), dimensions={0,1}\n r = $T[$B,$M,$N] divide(s, u)\n";

bool IsOneKernel(const Module& m) {
  CompileOptions options;
  options.cpu.levels = {"v3"};
  const auto planned = PlanProgram(m.Clone(), "m", options, ProgramTarget::kCpu, [](const std::string&) {});
  return planned.ok() && planned->plan.buffers.temp_bytes() == 0 && planned->thunks.size() == 1;
}

class Attention : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Attention, IsAsTheEvaluatorHasIt) {
  const auto [type, level] = GetParam();
  const double ulp = std::string(type) == "f64" ? 1e-14 : std::string(type) == "f32" ? 1e-6 : 4e-2;
  for (const Case& c : kCases)
    for (const char* rows : {kSoftmax, kNorm}) {
      const std::string text = WithExtents(Text(c, type, rows), c);
      auto module = ParseHlo(text, "t.hlo");
      ASSERT_TRUE(module.ok()) << module.status() << text;
      EXPECT_TRUE(IsOneKernel(**module)) << text;
      for (int threads : {1, 3})
        ExpectAsEvaluator(**module, {SeededValues(**module, 5)}, level, threads, {64 * ulp, 64 * ulp}, text);
    }
}

INSTANTIATE_TEST_SUITE_P(, Attention,
                         testing::Combine(testing::Values("f32", "f64", "bf16", "f16"),
                                          testing::Values("native", "v3", "v2")));

}  // namespace
}  // namespace kiln
