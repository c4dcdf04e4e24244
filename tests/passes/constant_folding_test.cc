// Large constants: what is made of them is computed at compile time where the program does not grow by it, within the
// budget of steps. (Small ones, and what is never folded: golden/constant-folding.hlo.)
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// f16[80,64] with different elements in place of WEIGHTS: more than are folded for nothing.
std::string WithWeights(const std::string& text) {
  std::vector<std::string> rows;
  for (int r = 0; r < 80; ++r) {
    std::vector<int> row;
    for (int c = 0; c < 64; ++c) row.push_back((64 * r + c) % 2039);
    rows.push_back(absl::StrCat("{", absl::StrJoin(row, ","), "}"));
  }
  const std::string constant = absl::StrCat("f16[80,64] constant({", absl::StrJoin(rows, ","), "})");
  std::string out = "HloModule m\n\nENTRY e {\n" + text + "}\n";
  out.replace(out.find("WEIGHTS"), 7, constant);
  return out;
}

// Whether anything was folded; its value is that of the program.
bool Folds(const std::string& text, int64_t steps = PassContext::kFoldingSteps) {
  auto m = ParseHlo(WithWeights(text), "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  const auto before = Evaluate(**m, {});
  PassContext ctx;
  ctx.folding_steps = steps;
  const auto changed = FindPass("constant-folding")->run(**m, ctx);
  EXPECT_TRUE(changed.ok()) << changed.status();
  const auto after = Evaluate(**m, {});
  EXPECT_TRUE(before.ok() && after.ok() && *before == *after) << ToText(**m);
  return *changed;
}

constexpr char kTransposed[] = "  w = WEIGHTS\n  ROOT t = f16[64,80] transpose(w), dimensions={1,0}\n";

TEST(ConstantFolding, OtherOrder) { EXPECT_TRUE(Folds(kTransposed)); }

TEST(ConstantFolding, KeepsToTheBudget) {
  EXPECT_TRUE(Folds(kTransposed, 80 * 64));
  EXPECT_FALSE(Folds(kTransposed, 80 * 64 - 1));
}

TEST(ConstantFolding, ScaleOfEachColumn) {
  EXPECT_TRUE(
      Folds("  w = WEIGHTS\n  s = f16[] constant(0.5)\n  b = f16[80,64] broadcast(s), dimensions={}\n"
            "  ROOT r = f16[80,64] multiply(w, b)\n"));
}

TEST(ConstantFolding, PartsThatTakeTheWholeTogether) {
  EXPECT_TRUE(
      Folds("  w = WEIGHTS\n  a = f16[70,64] slice(w), slice={[0:70], [0:64]}\n"
            "  b = f16[10,64] slice(w), slice={[70:80], [0:64]}\n  ROOT r = (f16[70,64], f16[10,64]) tuple(a, b)\n"));
}

TEST(ConstantFolding, NotWhereTheConstantStays) {
  EXPECT_FALSE(
      Folds("  w = WEIGHTS\n  t = f16[64,80] transpose(w), dimensions={1,0}\n"
            "  ROOT r = (f16[80,64], f16[64,80]) tuple(w, t)\n"));
}

TEST(ConstantFolding, NotIntoMoreBytes) {
  EXPECT_FALSE(Folds("  w = WEIGHTS\n  ROOT r = f32[80,64] convert(w)\n"));
  EXPECT_TRUE(Folds("  w = WEIGHTS\n  ROOT r = f8e5m2[80,64] convert(w)\n"));
}

TEST(ConstantFolding, NotOverlappingPartsOfMoreBytes) {
  EXPECT_FALSE(
      Folds("  w = WEIGHTS\n  a = f16[70,64] slice(w), slice={[0:70], [0:64]}\n"
            "  b = f16[70,64] slice(w), slice={[10:80], [0:64]}\n  ROOT r = (f16[70,64], f16[70,64]) tuple(a, b)\n"));
}

}  // namespace
}  // namespace kiln
