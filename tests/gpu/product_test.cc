// Every tile of tiles.def on products of every type that it serves: ragged and whole extents, operands either way
// round, alone and inside a fusion. Values are small integers, so that results are exact in any order.
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

void ExpectSame(const std::string& text) {
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
  CompileOptions compile;
  compile.gpu_libraries = false;
  RunOptions run;
  run.backend = "gpu-emulated";
  run.check_accesses = true;
  auto got = RunModule(std::move(*module), arguments, compile, run);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->results.size(), wanted.size());
  for (size_t k = 0; k < wanted.size(); ++k)
    EXPECT_TRUE(got->results[k] == wanted[k]) << "product " << k << " of\n" << text;
}

const std::vector<Extents> kExtents = {{1, 64, 128, 64}, {2, 37, 70, 45}, {1, 1, 129, 7}};
const std::vector<int64_t> kThreadTiles = {0, 1, 2, 3, 4}, kTensorTiles = {5, 6, 7, 8, 9, 10};

TEST(Product, Tensor16) {
  for (const char* type : {"f16", "bf16"}) ExpectSame(Program(type, "f32", kTensorTiles, kExtents));
}
TEST(Product, Tensor8) { ExpectSame(Program("s8", "s32", kTensorTiles, kExtents)); }
TEST(Product, ThreadsOfFloats) {
  ExpectSame(Program("f32", "f32", kThreadTiles, kExtents));
  ExpectSame(Program("bf16", "f32", kThreadTiles, {{2, 37, 70, 45}}));
}
TEST(Product, ThreadsOfOthers) {
  ExpectSame(Program("f64", "f64", kThreadTiles, {{2, 37, 70, 45}}));
  ExpectSame(Program("s32", "s32", kThreadTiles, {{2, 37, 70, 45}}));
  ExpectSame(Program("c64", "c64", {0}, {{2, 37, 70, 45}}));
}

TEST(Product, AroundIt) {
  for (int64_t tile : {0, 2, 7, 8})
    ExpectSame(absl::StrCat(R"(HloModule m
f {
  q = s8[1,50,40] parameter(0)
  w = bf16[1,40,66] parameter(1)
  bias = f32[66] parameter(2)
  a = bf16[1,50,40] convert(q)
  d = f32[1,50,66] dot(a, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  flat = f32[50,66] bitcast(d)
  b = f32[50,66] broadcast(bias), dimensions={1}
  ROOT r = f32[50,66] add(flat, b)
}
ENTRY e {
  q = s8[1,50,40] parameter(0)
  w = bf16[1,40,66] parameter(1)
  bias = f32[66] parameter(2)
  ROOT r = f32[50,66] fusion(q, w, bias), kind=kCustom, calls=f, backend_config={"fusion_backend_config":{"kind":"__triton_gemm"},"selected_algorithm":")",
                            tile, "\"}\n}\n"));
}

TEST(Product, RefusesATileThatCannotServe) {
  auto module = ParseHlo(Program("f32", "f32", {7}, {{1, 8, 8, 8}}), "m.hlo");
  ASSERT_TRUE(module.ok());
  CompileOptions compile;
  compile.gpu_libraries = false;
  compile.cpu_levels.clear();
  compile.gpu_targets = {"sm_80"};
  const auto model = Compile(std::move(*module), compile);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("tile 7 of its tuning result cannot compute it on sm_80"), std::string::npos)
      << model.status();
}

TEST(Product, TheHeuristicTakesTensorCoresAndFillsTheDevice) {
  auto target = FindGpuTarget("sm_90");
  auto old = FindGpuTarget("sm_75");
  ASSERT_TRUE(target.ok() && old.ok());
  const auto tile = [&](const std::string& in, const std::string& out, const Extents& e, const GpuTarget& t) {
    auto m = ParseHlo(Program(in, out, {-1}, {e}), "m.hlo");
    EXPECT_TRUE(m.ok()) << m.status();
    auto tile = gpu::TileOf((*m)->entry()->root()->operand(0), t);
    EXPECT_TRUE(tile.ok()) << tile.status();
    return *tile;
  };
  EXPECT_TRUE(tile("bf16", "bf16", {1, 4096, 4096, 4096}, *target) == gpu::AllTiles()[10]);
  EXPECT_TRUE(tile("bf16", "bf16", {1, 16, 4096, 4096}, *target).rows == 16);
  EXPECT_TRUE(tile("bf16", "bf16", {1, 4096, 4096, 4096}, *old).kind == gpu::Tile::kThreads);
  EXPECT_TRUE(tile("f32", "f32", {1, 4096, 4096, 4096}, *target) == gpu::AllTiles()[4]);
  EXPECT_TRUE(tile("f32", "f32", {1, 100, 100, 4096}, *target).kind == gpu::Tile::kThreads);
}

}  // namespace
}  // namespace kiln
