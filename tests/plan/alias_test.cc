// Which results of a fusion may lie where an operand lies: what planning assumes and what the plan checker allows.
#include "compiler/plan/alias.h"

#include "absl/strings/str_cat.h"
#include "compiler/hlo/parser.h"
#include "compiler/thunk/check/access.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// Whether result `output` of the one fusion in a module may lie where operand `k` lies; the checker says the same.
bool Shares(const std::string& fused, const std::string& shape, const std::string& operands, int64_t k,
            int64_t output) {
  const std::string text = absl::StrCat("HloModule m\nf {\n", fused, "}\nENTRY e {\n  x = f32[4]{0} parameter(0)\n",
                                        "  y = f32[4]{0} parameter(1)\n  n = s32[] parameter(2)\n  ROOT r = ", shape,
                                        " fusion(", operands, "), kind=kLoop, calls=f\n}\n");
  auto m = ParseHlo(text, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  if (!m.ok()) return false;
  const Instruction* fusion = (*m)->entry()->root();
  const bool may = MayShareWithOperand(fusion, k, output);
  EXPECT_EQ(may, MayOverwrite(fusion, k, output)) << text;
  return may;
}

constexpr char kThree[] = "(s32[], f32[4]{0}, f32[4]{0})";

TEST(Alias, NeighboursOfOneLoopBesideAnother) {
  const std::string f =
      "  p = f32[4]{0} parameter(0)\n  q = f32[4]{0} parameter(1)\n  i = s32[] parameter(2)\n  one = s32[] "
      "constant(1)\n"
      "  next = s32[] add(i, one)\n  a = f32[4]{0} add(p, q)\n  b = f32[4]{0} multiply(p, q)\n"
      "  ROOT t = (s32[], f32[4]{0}, f32[4]{0}) tuple(next, a, b)\n";
  EXPECT_TRUE(Shares(f, kThree, "x, y, n", 0, 1));
  EXPECT_TRUE(Shares(f, kThree, "x, y, n", 1, 2));
  EXPECT_TRUE(Shares(f, kThree, "x, y, n", 2, 0));
}

TEST(Alias, NotAcrossAnotherLoop) {
  const std::string f =
      "  p = f32[4]{0} parameter(0)\n  q = f32[4]{0} parameter(1)\n  i = s32[] parameter(2)\n  one = s32[] "
      "constant(1)\n"
      "  next = s32[] add(i, one)\n  a = f32[4]{0} add(p, q)\n  b = f32[4]{0} multiply(p, q)\n"
      "  ROOT t = (f32[4]{0}, s32[], f32[4]{0}) tuple(a, next, b)\n";
  EXPECT_FALSE(Shares(f, "(f32[4]{0}, s32[], f32[4]{0})", "x, y, n", 0, 0));
  EXPECT_TRUE(Shares(f, "(f32[4]{0}, s32[], f32[4]{0})", "x, y, n", 2, 1));
}

TEST(Alias, NotWhereAnotherElementIsRead) {
  const std::string f =
      "  p = f32[4]{0} parameter(0)\n  q = f32[4]{0} parameter(1)\n  i = s32[] parameter(2)\n  one = s32[] "
      "constant(1)\n"
      "  next = s32[] add(i, one)\n  a = f32[4]{0} add(p, q)\n  back = f32[4]{0} reverse(p), dimensions={0}\n"
      "  b = f32[4]{0} multiply(back, q)\n  ROOT t = (s32[], f32[4]{0}, f32[4]{0}) tuple(next, a, b)\n";
  EXPECT_FALSE(Shares(f, kThree, "x, y, n", 0, 1));
  EXPECT_TRUE(Shares(f, kThree, "x, y, n", 1, 2));
}

// Between the axes of a transform its spectrum lies in the result.
TEST(Alias, NotBehindATransform) {
  const std::string f =
      "  p = f32[4]{0} parameter(0)\n  q = f32[4]{0} parameter(1)\n  c = c64[4]{0} convert(p)\n"
      "  s = c64[4]{0} fft(c), fft_type=FFT, fft_length={4}\n  a = f32[4]{0} real(s)\n"
      "  ROOT b = f32[4]{0} multiply(a, q)\n";
  EXPECT_FALSE(Shares(f, "f32[4]{0}", "x, y", 0, 0));
  EXPECT_FALSE(Shares(f, "f32[4]{0}", "x, y", 1, 0));
}

// An update of rows that are made of old rows nearby: the checker lets the kernel overwrite them that keeps those rows,
// and only where their distance is known.
TEST(Alias, RowsThatAreKept) {
  const auto overwrites = [](const std::string& read, const std::string& config) {
    const std::string text = absl::StrCat(
        "HloModule m\nf {\n p = f32[9,4]{1,0} parameter(0)\n s = f32[8,4]{1,0} slice(p), slice={[1:9], [0:4]}\n u = ",
        "f32[8,4]{1,0} ", read,
        "\n k = s32[] constant(0)\n ROOT r = f32[9,4]{1,0} dynamic-update-slice(p, u, k, k)\n}\n",
        "ENTRY e {\n x = f32[9,4]{1,0} parameter(0)\n ROOT r = f32[9,4]{1,0} fusion(x), kind=kCustom, calls=f", config,
        "\n}\n");
    auto m = ParseHlo(text, "m.hlo");
    EXPECT_TRUE(m.ok()) << m.status();
    return m.ok() && MayOverwrite((*m)->entry()->root(), 0, 0);
  };
  const std::string kept = ", backend_config={\"fusion_backend_config\":{\"kind\":\"rows_in_place\"}}";
  EXPECT_TRUE(overwrites("negate(s)", kept));
  EXPECT_FALSE(overwrites("negate(s)", ""));
  EXPECT_FALSE(overwrites("reverse(s), dimensions={0}", kept));
}

}  // namespace
}  // namespace kiln
