// Every tile of gpu_tiles.def on products of every type that it serves: ragged and whole extents, operands either way
// round, alone and inside a fusion. Values are small integers, so that results are exact in any order.
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "aot/tools/runner.h"
#include "codegen/gpu/tiles.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

struct Extents {
  int64_t batch, m, n, k;
};

// One program with a product for each tile, extents and orientation.
std::string Program(const std::string& in, const std::string& out, const std::vector<int64_t>& tiles,
                    const std::vector<Extents>& extents) {
  std::string body;
  std::vector<std::string> names, shapes;
  int parameters = 0;
  for (const Extents& e : extents)
    for (int turned = 0; turned < 4; ++turned) {
      const bool a_first = turned & 1, b_last = turned & 2;
      const std::string a =
          absl::StrCat(in, "[", e.batch, ",", a_first ? absl::StrCat(e.k, ",", e.m) : absl::StrCat(e.m, ",", e.k), "]");
      const std::string b =
          absl::StrCat(in, "[", e.batch, ",", b_last ? absl::StrCat(e.n, ",", e.k) : absl::StrCat(e.k, ",", e.n), "]");
      const int x = parameters++, y = parameters++;
      absl::StrAppend(&body, "  p", x, " = ", a, " parameter(", x, ")\n  p", y, " = ", b, " parameter(", y, ")\n");
      for (int64_t t : tiles) {
        names.push_back(absl::StrCat("d", names.size()));
        shapes.push_back(absl::StrCat(out, "[", e.batch, ",", e.m, ",", e.n, "]"));
        absl::StrAppend(&body, "  ", names.back(), " = ", shapes.back(), " dot(p", x, ", p", y,
                        "), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={", a_first ? 1 : 2,
                        "}, rhs_contracting_dims={", b_last ? 2 : 1, "}, backend_config={\"selected_algorithm\":\"", t,
                        "\"}\n");
      }
    }
  return absl::StrCat("HloModule m\nENTRY e {\n", body, "  ROOT t = (", absl::StrJoin(shapes, ", "), ") tuple(",
                      absl::StrJoin(names, ", "), ")\n}\n");
}

// `kernels`: how many different ones the program has at least; with padding it has more.
void ExpectSame(const std::string& text, size_t kernels, CompileOptions compile = {}) {
  auto module = ParseHlo(text, "m.hlo");
  ASSERT_TRUE(module.ok()) << module.status();
  std::mt19937 random(7);
  std::vector<Literal> arguments;
  for (const Instruction* p : (*module)->entry()->parameters()) {
    Literal v(p->shape());
    for (int64_t k = 0; k < p->shape().ElementCount(); ++k) {
      Element e;
      e.re = static_cast<double>(random() % 7) - 3;
      e.i = static_cast<int64_t>(e.re);
      v.Set(k, e);
    }
    arguments.push_back(std::move(v));
  }
  auto want = Evaluate(**module, arguments);
  ASSERT_TRUE(want.ok()) << want.status();
  std::vector<Literal> wanted;
  FlattenLiteral(*want, &wanted);
  compile.gpu.libraries = false;
  RunOptions run;
  run.backend = "gpu-emulated";
  run.check_accesses = true;
  auto got = RunModule(std::move(*module), arguments, compile, run);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->results.size(), wanted.size());
  EXPECT_GE(got->model.report.kernels, static_cast<int64_t>(kernels)) << "tiles were lost on the way";
  for (size_t k = 0; k < wanted.size(); ++k)
    EXPECT_TRUE(got->results[k] == wanted[k]) << "product " << k << " of\n" << text;
}

const std::vector<Extents> kExtents = {{1, 64, 128, 64}, {2, 37, 70, 45}, {1, 1, 129, 7}};
const std::vector<int64_t> kThreadTiles = {0, 1, 2, 3, 4}, kTensorTiles = {5, 6, 7, 8, 9, 10, 14, 15};

TEST(Product, Tensor16) {
  for (const char* type : {"f16", "bf16"}) ExpectSame(Program(type, "f32", kTensorTiles, kExtents), 8 * 3 * 4);
}
TEST(Product, Tensor8) { ExpectSame(Program("s8", "s32", kTensorTiles, kExtents), 8 * 3 * 4); }
TEST(Product, TensorTf32) {
  CompileOptions compile;
  compile.gpu.tf32 = true;
  ExpectSame(Program("f32", "f32", kTensorTiles, kExtents), 8 * 3 * 4, compile);
}

// Factors of TF32 are the nearest ones, halves away from zero; what is no number stays that. A program that asks for
// precision has it, as one that is not allowed less.
TEST(Product, Tf32RoundsWhereItMay) {
  const auto run = [](const std::string& attributes, bool allowed) {
    auto module =
        ParseHlo(absl::StrCat("HloModule m\nENTRY e {\n x = f32[8,8] parameter(0)\n w = f32[8,8] parameter(1)\n"
                              " ROOT d = f32[8,8] dot(x, w), lhs_contracting_dims={1}, "
                              "rhs_contracting_dims={0}",
                              attributes, "\n}\n"),
                 "m.hlo");
    EXPECT_TRUE(module.ok()) << module.status();
    Literal x(Shape::Array(PrimitiveType::F32, {8, 8})), w = x;
    const double values[] = {1 + 0x1p-11, 1 + 0x1p-12, -1 - 0x1p-11, 1 + 0x1p-10, 0x1.ffffffp-127, INFINITY, NAN, 3e38};
    for (int64_t k = 0; k < 8; ++k) {
      Element e;
      e.re = values[k];
      x.Set(8 * k, e);  // the first column, times one
    }
    Element one;
    one.re = 1;
    for (int64_t k = 0; k < 8; ++k) w.Set(k, one);
    CompileOptions compile;
    compile.gpu.libraries = false;
    compile.gpu.tf32 = allowed;
    RunOptions options;
    options.backend = "gpu-emulated";
    auto got = RunModule(std::move(*module), {x, w}, compile, options);
    EXPECT_TRUE(got.ok()) << got.status();
    std::vector<double> out;
    for (int64_t k = 0; k < 8; ++k) out.push_back(got->results[0].Get(8 * k).re);
    return out;
  };
  const std::vector<double> rounded = run("", true);
  EXPECT_EQ(rounded[0], 1 + 0x1p-10);
  EXPECT_EQ(rounded[1], 1);
  EXPECT_EQ(rounded[2], -1 - 0x1p-10);
  EXPECT_EQ(rounded[3], 1 + 0x1p-10);
  EXPECT_EQ(rounded[5], INFINITY);
  EXPECT_TRUE(std::isnan(rounded[6]));
  EXPECT_TRUE(std::isfinite(rounded[7]));
  for (const std::vector<double>& exact : {run("", false), run(", operand_precision={highest,highest}", true),
                                           run(", operand_precision={default,high}", true)}) {
    EXPECT_EQ(exact[0], 1 + 0x1p-11);
    EXPECT_EQ(exact[1], 1 + 0x1p-12);
  }
}
TEST(Product, ThreadsOfFloats) {
  ExpectSame(Program("f32", "f32", kThreadTiles, kExtents), 5 * 3 * 4);
  ExpectSame(Program("bf16", "f32", kThreadTiles, {{2, 37, 70, 45}}), 5 * 4);
}
TEST(Product, ThreadsOfOthers) {
  ExpectSame(Program("f64", "f64", kThreadTiles, {{2, 37, 70, 45}}), 5 * 4);
  ExpectSame(Program("s32", "s32", kThreadTiles, {{2, 37, 70, 45}}), 5 * 4);
  ExpectSame(Program("c64", "c64", {0}, {{2, 37, 70, 45}}), 4);
}

// A product between a conversion and a sum, in one kernel whose tile comes from tuning results.
TEST(Product, AroundIt) {
  constexpr char kText[] = R"(HloModule m
ENTRY e {
  q = s8[48,40] parameter(0)
  w = bf16[40,72] parameter(1)
  bias = f32[72] parameter(2)
  a = bf16[48,40] convert(q)
  d = f32[48,72] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[48,72] broadcast(bias), dimensions={1}
  ROOT r = f32[48,72] add(d, b)
})";
  CompileOptions compile;
  compile.gpu.libraries = false;
  compile.cpu.levels.clear();
  compile.gpu.targets = {"sm_80"};
  auto module = ParseHlo(kText, "m.hlo");
  ASSERT_TRUE(module.ok());
  const auto model = Compile(std::move(*module), compile);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->report.untuned.size(), 1U);
  for (int64_t tile : {0, 2, 7, 8}) {
    auto results = std::make_shared<TuningResults>();
    results->Add("sm_80", model->report.untuned[0].key, {tile, 0, 1.0});
    compile.gpu.tuning.results = results;
    ExpectSame(kText, 1, compile);
  }
}

// A convolution with bias, residual and activation, in one kernel.
TEST(Product, AroundAConvolution) {
  ExpectSame(R"(HloModule m
ENTRY e {
  x = f16[2,9,7,16] parameter(0)
  w = f16[3,3,16,24] parameter(1)
  bias = f16[24] parameter(2)
  side = f16[2,9,7,24] parameter(3)
  zero = f16[] constant(0)
  c = f16[2,9,7,24] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  b = f16[2,9,7,24] broadcast(bias), dimensions={3}
  s = f16[2,9,7,24] add(c, b)
  t = f16[2,9,7,24] add(s, side)
  z = f16[2,9,7,24] broadcast(zero), dimensions={}
  ROOT r = f16[2,9,7,24] maximum(t, z)
})",
             1);
}

// Convolutions: padding, strides, dilation of either side, reversal and groups.
TEST(Product, Convolutions) {
  struct Form {
    const char *x, *kernel, *out, *attributes;
  };
  const Form forms[] = {
      {"2,9,7,16", "3,3,16,24", "2,9,7,24", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"},
      {"1,9,8,3", "3,2,3,16", "1,4,7,16", "window={size=3x2 stride=2x1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f"},
      {"1,6,5,8", "3,3,8,10", "1,11,5,10",
       "window={size=3x3 pad=1_1x2_2 lhs_dilate=2x1 rhs_dilate=1x2}, dim_labels=b01f_01io->b01f"},
      {"2,12,16", "3,4,32", "2,10,32", "window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=4"},
      {"2,5,5,6", "3,3,1,6", "2,3,3,6", "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=6"}};
  CompileOptions compile;
  compile.gpu.tf32 = true;
  for (const auto& [in, out, tiles] : {std::tuple{"bf16", "f32", std::vector<int64_t>{-1, 0, 2, 5, 7, 8}},
                                       {"f32", "f32", {-1, 1, 4, 5, 10, 14, 15}},
                                       {"s8", "s32", {-1, 6, 10}},
                                       {"c64", "c64", {-1}}}) {
    std::string body;
    std::vector<std::string> names, shapes;
    int parameters = 0;
    for (const Form& f : forms) {
      const int x = parameters++, w = parameters++;
      absl::StrAppend(&body, "  p", x, " = ", in, "[", f.x, "] parameter(", x, ")\n  p", w, " = ", in, "[", f.kernel,
                      "] parameter(", w, ")\n");
      for (int64_t tile : tiles) {
        names.push_back(absl::StrCat("c", names.size()));
        shapes.push_back(absl::StrCat(out, "[", f.out, "]"));
        absl::StrAppend(&body, "  ", names.back(), " = ", shapes.back(), " convolution(p", x, ", p", w, "), ",
                        f.attributes, ", backend_config={\"selected_algorithm\":\"", tile, "\"}\n");
      }
    }
    ExpectSame(absl::StrCat("HloModule m\nENTRY e {\n", body, "  ROOT t = (", absl::StrJoin(shapes, ", "), ") tuple(",
                            absl::StrJoin(names, ", "), ")\n}\n"),
               tiles.size() * std::size(forms), compile);
  }
}

// Scatter with sums of floats: atomics by default, sorted updates where every run must give the same bits.
TEST(Scatter, DeterministicOnRequest) {
  constexpr char kText[] = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[100] parameter(0)
  i = s32[64,1] parameter(1)
  u = f32[64] parameter(2)
  ROOT r = f32[100] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
})";
  CompileOptions compile;
  ExpectSame(kText, 1, compile);
  compile.gpu.deterministic = true;
  ExpectSame(kText, 3, compile);  // a sort and what follows it
}

TEST(Product, RefusesATileThatCannotServe) {
  auto module = ParseHlo(Program("f32", "f32", {7}, {{1, 8, 8, 8}}), "m.hlo");
  ASSERT_TRUE(module.ok());
  CompileOptions compile;
  compile.gpu.libraries = false;
  compile.cpu.levels.clear();
  compile.gpu.targets = {"sm_80"};
  const auto model = Compile(std::move(*module), compile);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("tile 7 of its tuning result cannot compute it on sm_80"), std::string::npos)
      << model.status();
}

// Products of one kernel share a tile, which the one that asks for precision decides.
TEST(Product, OneThatAsksForPrecisionDecidesForTheKernel) {
  auto target = FindGpuTarget("sm_90");
  ASSERT_TRUE(target.ok());
  target->tf32 = true;
  for (const auto& [precision, kind] :
       {std::pair{"", gpu::Tile::kTensor}, {", operand_precision={highest,highest}", gpu::Tile::kThreads}}) {
    auto m = ParseHlo(absl::StrCat(R"(HloModule m
f {
  x = f32[1,64,64] parameter(0)
  w = f32[1,64,64] parameter(1)
  a = f32[1,64,64] dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  b = f32[1,64,64] dot(w, x), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1})",
                                   precision, R"(
  ROOT t = (f32[1,64,64], f32[1,64,64]) tuple(a, b)
}
ENTRY e {
  x = f32[1,64,64] parameter(0)
  w = f32[1,64,64] parameter(1)
  ROOT r = (f32[1,64,64], f32[1,64,64]) fusion(x, w), kind=kCustom, calls=f, backend_config={"fusion_backend_config":{"kind":"__triton_gemm"}}
})"),
                      "m.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    const Instruction* fusion = (*m)->entry()->root();
    const auto tile = gpu::TileOf(fusion, *gpu::ProductsOf(fusion), *target);
    ASSERT_TRUE(tile.ok()) << tile.status();
    EXPECT_EQ(tile->kind, kind) << precision;
  }
}

TEST(Product, TheHeuristicTakesTensorCoresAndFillsTheDevice) {
  auto target = FindGpuTarget("sm_90");
  auto old = FindGpuTarget("sm_75");
  ASSERT_TRUE(target.ok() && old.ok());
  const auto tile = [&](const std::string& in, const std::string& out, const Extents& e, const GpuTarget& t) {
    auto m = ParseHlo(Program(in, out, {-1}, {e}), "m.hlo");
    EXPECT_TRUE(m.ok()) << m.status();
    const Instruction* dot = (*m)->entry()->root()->operand(0);
    auto tile = gpu::TileOf(dot, *gpu::ProductsOf(dot), t);
    EXPECT_TRUE(tile.ok()) << tile.status();
    return *tile;
  };
  EXPECT_TRUE(tile("bf16", "bf16", {1, 4096, 4096, 4096}, *target) == gpu::AllTiles()[8]);
  EXPECT_TRUE(tile("bf16", "bf16", {1, 16, 4096, 4096}, *target).rows == 16);
  EXPECT_TRUE(tile("bf16", "bf16", {1, 4096, 4096, 4096}, *old).kind == gpu::Tile::kThreads);
  EXPECT_TRUE(tile("f32", "f32", {1, 4096, 4096, 4096}, *target) == gpu::AllTiles()[4]);
  EXPECT_TRUE(tile("f32", "f32", {1, 100, 100, 4096}, *target).kind == gpu::Tile::kThreads);
  target->tf32 = true;
  EXPECT_TRUE(tile("f32", "f32", {1, 4096, 4096, 4096}, *target).kind == gpu::Tile::kTensor);
}

}  // namespace
}  // namespace kiln
