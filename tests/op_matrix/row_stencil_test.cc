// Steps of a simulation on a grid, written over the grid: rows that are made of rows above and below, of several types
// and ranks, in one block and in several, at starts that are clamped, of grids that are the caller's and that are not.
// Against the evaluator, bit for bit.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

struct Case {
  const char* type;
  Ints grid, update, start;  // start: as written, before it is clamped
  std::vector<Ints> reads;   // where slices of the grid begin
  bool donated;
};

const Case kCases[] = {
    // One row above and below, three blocks.
    {"f32", {150, 40}, {148, 38}, {1, 1}, {{1, 1}, {0, 1}, {2, 1}, {1, 0}, {1, 2}}, true},
    // Two above and one below; the last block is short.
    {"f64", {200, 33}, {197, 32}, {2, 0}, {{2, 0}, {0, 1}, {3, 1}}, true},
    // Rows above alone, and rows below alone, in the caller's array.
    {"s8", {140, 64}, {100, 64}, {30, 0}, {{28, 0}, {29, 0}}, false},
    {"u16", {140, 50}, {100, 47}, {20, 3}, {{22, 0}, {21, 1}}, false},
    // No row but its own.
    {"s32", {70, 32}, {70, 31}, {0, 1}, {{0, 0}, {0, 1}}, true},
    // Starts beyond the last place.
    {"bf16", {130, 4, 10}, {129, 3, 10}, {9, 7, -3}, {{1, 0, 0}, {0, 1, 0}}, true},
    {"c64", {90, 5, 8}, {80, 3, 6}, {5, 1, 1}, {{6, 0, 2}, {4, 2, 0}, {5, 1, 1}}, true},
    // In one block.
    {"f32", {20, 96}, {18, 90}, {1, 3}, {{0, 3}, {2, 3}, {1, 6}}, true},
};

std::string Slice(const Case& c, size_t k) {
  std::vector<std::string> parts;
  for (size_t d = 0; d < c.grid.size(); ++d)
    parts.push_back(absl::StrCat("[", c.reads[k][d], ":", c.reads[k][d] + c.update[d], "]"));
  return absl::StrCat("{", absl::StrJoin(parts, ","), "}");
}

// Three steps of a loop, or one without.
std::string Text(const Case& c, bool loop) {
  const std::string grid = absl::StrCat(c.type, "[", absl::StrJoin(c.grid, ","), "]");
  const std::string part = absl::StrCat(c.type, "[", absl::StrJoin(c.update, ","), "]");
  std::string step, starts;
  for (size_t d = 0; d < c.start.size(); ++d) {
    absl::StrAppend(&step, " at", d, " = s32[] constant(", c.start[d], ")\n");
    absl::StrAppend(&starts, ", at", d);
  }
  std::string sum = "y";
  for (size_t k = 0; k < c.reads.size(); ++k) {
    absl::StrAppend(&step, " p", k, " = ", part, " slice(x), slice=", Slice(c, k), "\n s", k, " = ", part, " ",
                    k % 2 ? "subtract(" : "add(", sum, ", p", k, ")\n");
    sum = absl::StrCat("s", k);
  }
  absl::StrAppend(&step, " new = ", grid, " dynamic-update-slice(x, ", sum, starts, ")\n");
  std::string text = absl::StrCat(
      "HloModule m",
      c.donated ? absl::StrCat(", input_output_alias={ ", loop ? "{1}" : "{}", ": (0, {}, may-alias) }") : "", "\n");
  if (!loop)
    return absl::StrCat(text, "ENTRY e {\n x = ", grid, " parameter(0)\n y = ", part, " parameter(1)\n", step,
                        " ROOT r = ", grid, " copy(new)\n}\n");
  const std::string state = absl::StrCat("(s32[], ", grid, ", ", part, ")");
  absl::StrAppend(&text, "less {\n t = ", state,
                  " parameter(0)\n i = s32[] get-tuple-element(t), index=0\n n = s32[] constant(3)\n"
                  " ROOT l = pred[] compare(i, n), direction=LT\n}\nbody {\n t = ",
                  state, " parameter(0)\n i = s32[] get-tuple-element(t), index=0\n x = ", grid,
                  " get-tuple-element(t), index=1\n y = ", part, " get-tuple-element(t), index=2\n", step,
                  " one = s32[] constant(1)\n next = s32[] add(i, one)\n ROOT r = ", state,
                  " tuple(next, new, y)\n}\nENTRY e {\n x = ", grid, " parameter(0)\n y = ", part,
                  " parameter(1)\n zero = s32[] constant(0)\n t = ", state, " tuple(zero, x, y)\n ROOT w = ", state,
                  " while(t), condition=less, body=body\n}\n");
  return text;
}

class RowStencils : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(RowStencils, AreStepsOfTheWholeGrid) {
  const auto [level, loop] = GetParam();
  for (const Case& c : kCases) {
    const std::string text = Text(c, loop);
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status() << text;
    for (int threads : {1, 3})
      ExpectAsEvaluator(**module, {SeededValues(**module, 5)}, level, threads, {0, 0}, text, Algebra::kExact);
  }
}

INSTANTIATE_TEST_SUITE_P(, RowStencils,
                         testing::Combine(testing::Values("native", "v3", "v2"), testing::Values(true, false)));

}  // namespace
}  // namespace kiln
