// Every partition's tile of an array, gathered again, is the array: for tilings in one and two dimensions, devices in
// any order, copies of tiles, extents that tiles do not divide, and axes of a mesh.
#include "absl/strings/str_cat.h"
#include "aot/tools/runner.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/sharding.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// `program` on 8 partitions, each with the same x; the results of all.
std::vector<Literal> RunAll(const std::string& program, const Literal& x, const char* backend) {
  auto m = ParseHlo(program, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  CompileOptions compile;
  compile.cpu.levels = {"native"};
  RunOptions run;
  run.backend = backend;
  const std::vector<DeviceProgram> devices(8, DeviceProgram{m->get(), {x}});
  auto results = RunDevices(devices, 1, 8, {}, compile, run);
  EXPECT_TRUE(results.ok()) << results.status() << "\n" << program;
  std::vector<Literal> out;
  if (results.ok())
    for (const auto& r : *results) out.push_back(r[0]);
  return out;
}

Literal Numbers(const Ints& dims) {
  Literal x(Shape::Array(PrimitiveType::F32, dims));
  for (int64_t k = 0; k < x.size(); ++k) x.Set(k, Literal::Of(PrimitiveType::F32, static_cast<double>(k)).Get(0));
  return x;
}

std::string Text(const Shape& s) { return s.ToString(false); }

TEST(ManualSharding, TilesGatheredAreTheArray) {
  struct Case {
    const char* sharding;
    Ints dims, tile;
  };
  const Case cases[] = {
      {"devices=[8,1]<=[8]", {16, 3}, {2, 3}},
      {"devices=[1,8]7,6,5,4,3,2,1,0", {2, 8}, {2, 1}},
      {"devices=[2,4]<=[4,2]T(1,0)", {6, 8}, {3, 2}},
      {"devices=[2,2,2]<=[8] last_tile_dim_replicate", {4, 4}, {2, 2}},
      {"devices=[2,1,2,2]<=[2,2,2]T(2,0,1) last_tile_dims={replicated, manual}", {4, 4}, {2, 4}},
      {"devices=[4,2]<=[8]", {10, 5}, {3, 3}},
      {"devices=[8]<=[8]", {3}, {1}},
  };
  for (const Case& c : cases) {
    const Literal x = Numbers(c.dims);
    const std::string whole = Text(x.shape()), tile = Text(Shape::Array(PrimitiveType::F32, c.tile));
    const std::string program =
        absl::StrCat("HloModule m, num_partitions=8\nENTRY e {\n  x = ", whole, " parameter(0)\n  s = ", whole,
                     " custom-call(x), custom_call_target=\"Sharding\", sharding={", c.sharding, "}\n  t = ", tile,
                     " custom-call(s), custom_call_target=\"SPMDFullToShardShape\", sharding={manual}\n  n = ", tile,
                     " negate(t)\n  m = ", tile,
                     " custom-call(n), custom_call_target=\"Sharding\", sharding={manual}\n  ROOT r = ", whole,
                     " custom-call(m), custom_call_target=\"SPMDShardToFullShape\", sharding={", c.sharding, "}\n}\n");
    for (const char* backend : {"cpu", "gpu-emulated"}) {
      const std::vector<Literal> all = RunAll(program, x, backend);
      ASSERT_EQ(all.size(), 8u);
      for (const Literal& r : all)
        for (int64_t k = 0; k < x.size(); ++k)
          ASSERT_EQ(r.Get(k).re, -static_cast<double>(k)) << c.sharding << " on " << backend << ", element " << k;
    }
  }
}

TEST(ManualSharding, TextThatIsNoShardingIsRefused) {
  for (const char* text :
       {"", "{", "replicated", "{devices}", "{devices=[2,2]0,1,2}", "{devices=[2,2]0,1,2,2}", "{devices=[2,2]<=[5]}",
        "{devices=[2,2]<=[4]T}", "{devices=[2,2]<=[4]T(1)}", "{devices=[-2,-2]<=[4]}", "{devices=[2]0,x}",
        "{devices=[99999999,99999999,99999999]<=[8]}", "{devices=[2,2]<=[4] last_tile_dims={manual, manual, manual}}",
        "{devices=[2]<=[2] last_tile_dims={manual"})
    EXPECT_FALSE(ParseSharding(text).ok()) << text;
  std::string often = "\\\"a\\\"";  // its tiles are more than 64 bits count
  for (int k = 0; k < 70; ++k) often += ",\\\"a\\\"";
  for (const std::string& sharding : std::initializer_list<std::string>{
           "<@mesh, [{" + often + "}]>", "<@other, [{}]>", "<@mesh, [{\\\"z\\\"}]>",
           "<@mesh, [{\\\"a\\\", \\\"a\\\"}]>", "<@mesh, [{", "<@mesh, [{\\\"a\\\":(0)2}]>",
           "<mesh<[\\\"a\\\"=99999999999]>, [{}]>", "<@mesh, [{}]", ""}) {
    const std::string program = absl::StrCat(
        "HloModule m, num_partitions=2, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<[\"a\"=2]>}}\nENTRY e {\n"
        "  x = f32[8] parameter(0)\n  ROOT t = (f32[4]) custom-call(x), "
        "custom_call_target=\"xla.sdy.GlobalToLocalShape\", frontend_attributes={xla.sdy.in_shardings="
        "\"#sdy.sharding_per_value<[",
        sharding, "]>\",xla.sdy.manual_axes=\"#sdy<manual_axes{\\\"a\\\"}>\"}\n}\n");
    auto m = ParseHlo(program, "m.hlo");
    ASSERT_TRUE(m.ok()) << m.status() << program;
    EXPECT_FALSE(ManualBoundaryOf(*(*m)->entry()->root()).ok()) << sharding;
  }
}

TEST(ManualSharding, ATileOfAnotherTypeIsRefused) {
  const auto m = ParseHlo(R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0)
  s = f32[4] custom-call(x), custom_call_target="Sharding", sharding={devices=[2]0,1}
  ROOT t = s32[2] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={manual}
})",
                          "m.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  const auto boundary = ManualBoundaryOf(*(*m)->entry()->root());
  ASSERT_FALSE(boundary.ok());
  EXPECT_EQ(boundary.status().message(),
            "m.hlo:5:19: error: custom-call t: its sharding does not make s32[2] of f32[4]");
}

TEST(ManualSharding, MeshAxesChooseTheTile) {
  // Device 4a + 2b + c of the mesh; x is cut along c, then a; b is free.
  const std::string program =
      R"(HloModule m, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=2, "c"=2]>}}
ENTRY e {
  x = f32[8] parameter(0)
  t = (f32[2]) custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"c\", \"a\", \"b\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"a\", \"c\"}>"}
  ROOT r = f32[2] get-tuple-element(t), index=0
})";
  const std::vector<Literal> all = RunAll(program, Numbers({8}), "cpu");
  ASSERT_EQ(all.size(), 8u);
  for (int d = 0; d < 8; ++d) {
    const int a = d / 4, c = d % 2;
    EXPECT_EQ(all[static_cast<size_t>(d)].Get(0).re, 2 * (2 * c + a)) << "device " << d;
  }
}

}  // namespace
}  // namespace kiln
