// Plans of products whose constant operand lies as panels: what tiles and parts are multiples of, at every level.
#include "absl/strings/str_cat.h"
#include "codegen/cpu/convolution_plan.h"
#include "codegen/cpu/dot_plan.h"
#include "compiler/analysis/panels.h"
#include "compiler/hlo/parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::cpu {
namespace {

// As FindCpuLevel gives them, in what plans read.
CpuLevel Avx2() { return {"v3", "", "", 32, 16, true, true, false, false, false}; }
CpuLevel Avx512() { return {"v4", "", "", 64, 32, true, true, false, false, false}; }
CpuLevel Amx() { return {"amx", "", "", 64, 32, true, true, true, true, true}; }

MATCHER_P3(Cut, size, count, tail, "") { return arg.size == size && arg.count == count && arg.tail == tail; }

// A product in a fusion that reads its second operand as panels.
std::unique_ptr<Module> WithPanels(const std::string& text) {
  auto m = ParseHlo(absl::StrCat("HloModule m\nf {\n", text, "\n}\n"), "t.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  return m.ok() ? *std::move(m) : nullptr;
}

std::unique_ptr<Module> DotOfPanels(int64_t m, int64_t n, int64_t k, int64_t width) {
  const int64_t count = (n + width - 1) / width;
  return WithPanels(absl::StrCat(
      "  x = f32[2,", m, ",", k, "] parameter(0)\n  p = f32[2,", count, ",", k, ",", width,
      "] parameter(1)\n  t = f32[2,", k, ",", count, ",", width, "] transpose(p), dimensions={0,2,1,3}\n  b = f32[2,",
      k, ",", count * width, "] bitcast(t)\n  s = f32[2,", k, ",", n, "] slice(b), slice={[0:2], [0:", k, "], [0:", n,
      "]}\n  ROOT d = f32[2,", m, ",", n,
      "] dot(x, s), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"));
}

TEST(PanelPlan, TilesOfEveryLevelDivideAPanel) {
  const auto plan = [](const CpuLevel& level, int64_t m, int64_t n, int64_t width) {
    const auto module = DotOfPanels(m, n, 300, width);
    const BlockedDotPlan p = PlanDot(level, module->entry()->root())->blocked;
    EXPECT_EQ(p.product.panel_columns, width);
    EXPECT_EQ(p.product.b_k_stride, width);
    EXPECT_EQ(p.product.b_n_stride, 300);
    return PlanMatmul(level, p.product, p.rows.size, 1);
  };
  for (const CpuLevel& level : {Avx2(), Avx512(), Amx()})
    for (const int64_t width : {16, 32, 48, 64, 80, 96})
      for (const int64_t m : {2, 7, 13, 40, 300}) {
        const MatmulPlan p = plan(level, m, 4 * width - 3, width);
        EXPECT_TRUE(p.direct);
        EXPECT_EQ(width % p.tile_columns, 0) << level.name << " " << width << " " << m;
      }
  EXPECT_EQ(plan(Avx512(), 300, 256, 64).tile_columns, 64);
  EXPECT_EQ(plan(Avx512(), 300, 256, 64).tile_rows, 6);
  EXPECT_EQ(plan(Avx512(), 7, 256, 64).tile_columns, 32);  // one tile has all rows
  EXPECT_EQ(plan(Avx512(), 7, 256, 64).tile_rows, 7);
  EXPECT_EQ(plan(Avx2(), 300, 256, 64).tile_columns, 16);
  EXPECT_EQ(plan(Avx2(), 300, 192, 48).tile_columns, 24);
}

TEST(PanelPlan, PartsOfColumnsAreWholePanels) {
  const auto module = DotOfPanels(40, 960, 3000, 80);
  const DotPlan p = *PlanDot(Avx512(), module->entry()->root());
  EXPECT_EQ(p.shape.b_batch, 960 * 3000);
  EXPECT_GT(p.blocked.parts.count, 1);
  EXPECT_EQ(p.blocked.parts.size % 80, 0);
  // Of a last panel that is not full, a batch has all.
  const auto padded = DotOfPanels(40, 100, 64, 48);
  EXPECT_EQ(PlanDot(Avx512(), padded->entry()->root())->shape.b_batch, 3 * 48 * 64);
}

TEST(PanelPlan, WidthsFillTheLastPanel) {
  EXPECT_EQ(PanelWidth(768, 4), 64);
  EXPECT_EQ(PanelWidth(1000, 4), 48);  // 63 vectors
  EXPECT_EQ(PanelWidth(96, 4), 96);
  EXPECT_EQ(PanelWidth(65, 4), 80);
  EXPECT_EQ(PanelWidth(10, 4), 16);
  EXPECT_EQ(PanelWidth(64, 8), 32);
}

TEST(PanelPlan, PixelsAreCutEvenlyAndLargeKernelsIntoColumns) {
  const auto plan = [](int64_t pixels, int64_t in, int64_t out) {
    const auto module = WithPanels(absl::StrCat(
        "  x = f32[1,", pixels, ",", pixels, ",", in, "] parameter(0)\n  p = f32[1,", out / 64, ",", in,
        ",64] parameter(1)\n  t = f32[1,", in, ",", out / 64, ",64] transpose(p), dimensions={0,2,1,3}\n  b = f32[1,1,",
        in, ",", out, "] bitcast(t)\n  ROOT c = f32[1,", pixels, ",", pixels, ",", out,
        "] convolution(x, b), window={size=1x1}, dim_labels=b01f_01io->b01f"));
    return *PlanConvolution(Avx512(), module->entry()->root(), true);
  };
  const ConvolutionPlan small = plan(28, 128, 512);
  EXPECT_EQ(small.column_parts, 1);
  EXPECT_THAT(small.pieces, Cut(66, 12, 784 - 11 * 66));
  const ConvolutionPlan large = plan(7, 512, 2048);
  EXPECT_EQ(large.column_parts, 8);
  EXPECT_EQ(large.pieces.count, 1);
}

TEST(PanelPlan, GroupsAreReadInPlaceByDotInstructionsOnly) {
  const auto module = WithPanels(
      "  x = s8[1,40,64] parameter(0)\n  p = s8[1,2,16,64,4] parameter(1)\n  t = s8[1,16,4,2,64] transpose(p), "
      "dimensions={0,2,4,1,3}\n  b = s8[1,64,128] bitcast(t)\n  ROOT d = s32[1,40,128] dot(x, b), lhs_batch_dims={0}, "
      "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}");
  const auto plan = [&](const CpuLevel& level) {
    const BlockedDotPlan p = PlanDot(level, module->entry()->root())->blocked;
    EXPECT_EQ(p.product.panel_group, 4);
    return PlanMatmul(level, p.product, p.rows.size, 1);
  };
  const CpuLevel dots = {"v4dot", "", "", 64, 32, true, true, true, false, false};
  EXPECT_TRUE(plan(dots).direct);
  EXPECT_FALSE(plan(Avx512()).direct);  // converted to f32
  EXPECT_TRUE(PlanDot(Amx(), module->entry()->root())->blocked.product.tiles);
}

}  // namespace
}  // namespace kiln::cpu
