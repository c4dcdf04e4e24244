// Each program of partitioned/ computes the same, partitioned, as the evaluator computes whole on every device; a
// program whose arguments are cut takes its parts.
#include <cmath>
#include <filesystem>

#include "aot/tools/partitioned.h"
#include "aot/tools/runner.h"
#include "compiler/base/text.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/sharding/device_mesh.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

std::unique_ptr<Module> Load(const std::string& file) {
  auto text = ReadFile(file);
  EXPECT_TRUE(text.ok()) << text.status();
  auto m = ParseHlo(*text, file);
  EXPECT_TRUE(m.ok()) << m.status();
  return *std::move(m);
}

std::vector<Literal> RunWhole(const Module& m, const std::vector<Literal>& arguments, const char* backend) {
  CompileOptions compile;
  compile.cpu.levels = {"native"};
  compile.cpu.flush_subnormals = false;
  RunOptions run;
  run.backend = backend;
  const std::vector<DeviceProgram> devices(static_cast<size_t>(m.partition_count), DeviceProgram{&m, arguments});
  auto results = RunDevices(devices, 1, m.partition_count, {}, compile, run);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0] : std::vector<Literal>();
}

void ExpectClose(const Literal& got, const Literal& want) {
  ASSERT_EQ(got.shape().dims(), want.shape().dims());
  for (int64_t k = 0; k < want.size(); ++k) {
    const Element a = got.Get(k), b = want.Get(k);
    ASSERT_EQ(a.i, b.i) << k;
    ASSERT_LE(std::abs(a.re - b.re), 1e-4 * (1 + std::abs(b.re))) << k;
    ASSERT_LE(std::abs(a.im - b.im), 1e-4 * (1 + std::abs(b.im))) << k;
  }
}

TEST(Spmd, PartitionedProgramsComputeTheSame) {
  int programs = 0;
  for (const auto& f : std::filesystem::directory_iterator("tests/passes/partitioned")) {
    SCOPED_TRACE(f.path().string());
    const std::unique_ptr<Module> m = Load(f.path().string());
    std::unique_ptr<Module> partitioned = m->Clone();
    ASSERT_TRUE(PartitionProgram(partitioned.get()).ok());
    ASSERT_TRUE(VerifyModule(*partitioned).ok()) << VerifyModule(*partitioned);
    EXPECT_TRUE(ReadPartitionedEntry(*partitioned).has_value());
    const std::string text = ToText(*partitioned);
    auto read = ParseHlo(text, "partitioned.hlo");
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_TRUE(PartitionProgram(read->get()).ok());
    EXPECT_EQ(ToText(**read), text);
    EXPECT_LT(partitioned->entry()->parameter(0)->shape().ByteSize(), m->entry()->parameter(0)->shape().ByteSize());
    const std::vector<Literal> arguments = SeededArguments(*m, 7);
    const std::vector<Literal> want = RunWhole(*m, arguments, "reference"), got = RunWhole(*m, arguments, "cpu");
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < want.size(); ++k) ExpectClose(got[k], want[k]);
    ++programs;
  }
  EXPECT_GE(programs, 25);
}

// A device computes its share of a product of whole arrays; where it sums up parts instead, what is cut stays.
TEST(Spmd, UnevenPartsAreMadeOfWholeArrays) {
  struct Case {
    const char *x, *w, *dot;
  };
  for (const Case& c : {Case{"{replicated}", "{replicated}", "f32[8,22] dot"},
                        Case{"{devices=[1,3]<=[3]}", "{replicated}", "f32[8,22] dot"},
                        Case{"{devices=[1,3]<=[3]}", "{devices=[3,1]<=[3]}", "f32[8,64] dot"}}) {
    auto m =
        ParseHlo(absl::StrCat("HloModule m, num_partitions=3\nENTRY e {\n  x = f32[8,48] parameter(0), sharding=", c.x,
                              "\n  w = f32[48,64] parameter(1), sharding=", c.w,
                              "\n  d = f32[8,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                              "  ROOT t = f32[8,64] tanh(d), sharding={devices=[1,3]<=[3]}\n}"),
                 "t.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    ASSERT_TRUE(PartitionProgram(m->get()).ok());
    EXPECT_NE(ToText(**m).find(c.dot), std::string::npos) << ToText(**m);
  }
}

TEST(Spmd, ShardingsOverAnotherNumberOfDevicesAreRefused) {
  auto m = ParseHlo(
      "HloModule m, num_partitions=8\nENTRY e {\n  ROOT x = f32[8] parameter(0), sharding={devices=[4]<=[4]}\n}",
      "t.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  const absl::Status s = PartitionProgram(m->get());
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.message().find("t.hlo:3:"), absl::string_view::npos) << s;
  EXPECT_NE(s.message().find("over 4 devices in a module of 8 partitions"), absl::string_view::npos) << s;
}

TEST(Spmd, PartsOfOtherArraysAreRefused) {
  const char* shardings[] = {"{devices=[4]0,1,2,3}", "{devices=[2]0,1}", "{devices=[2]0,7}", "{devices=[2,1]0,1}",
                             "{replicated}"};
  for (const char* sharding : shardings) {
    auto m = ParseHlo(absl::StrCat("HloModule m, num_partitions=2, spmd_parameters_shardings={", sharding,
                                   "}, spmd_parameters_shapes={f32[16]}, spmd_output_sharding={", sharding,
                                   "}, spmd_output_shapes={f32[16]}\nENTRY e {\n  ROOT x = f32[8] parameter(0)\n}"),
                      "t.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    const absl::Status s = PartitionProgram(m->get());
    EXPECT_EQ(s.ok(), std::string(sharding) == "{devices=[2]0,1}") << sharding << s;
    if (!s.ok())
      EXPECT_NE(s.message().find("t.hlo:1:32: error: spmd_parameters_shardings"), absl::string_view::npos) << s;
  }
}

// Of frontend attributes, which the verifier does not read.
TEST(Spmd, MeshShardingsOfOtherArraysAreRefused) {
  struct Case {
    const char *sharding, *error;
  };
  for (const Case& c :
       {Case{"#sdy.sharding<@mesh, [{}, {\\\"y\\\"}, {}]>", "has a sharding of 3 dimensions for rank 2"},
        Case{"#sdy.sharding<@mesh, [{\\\"y\\\"}]>", "has a sharding of 1 dimensions for rank 2"},
        Case{"#sdy.sharding_per_value<[<@mesh, [{}, {\\\"y\\\"}]>, <@mesh, [{}, {\\\"y\\\"}]>]>",
             "has a list of shardings for 2 arrays, but has 1"}}) {
    auto m = ParseHlo(absl::StrCat("HloModule m, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = "
                                   "#sdy.mesh<[\"x\"=2, \"y\"=4]>}}\nENTRY e {\n  ROOT x = f32[16,8] parameter(0), "
                                   "frontend_attributes={xla.sdy.sharding=\"",
                                   c.sharding, "\"}\n}"),
                      "t.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    const absl::Status s = PartitionProgram(m->get());
    ASSERT_FALSE(s.ok()) << c.sharding;
    EXPECT_NE(s.message().find("t.hlo:3:"), absl::string_view::npos) << s;
    EXPECT_NE(s.message().find(c.error), absl::string_view::npos) << s;
  }
}

TEST(Spmd, AxesExpressShardings) {
  struct Case {
    const char *text, *again;  // null: no axes express it
  };
  for (const Case& c : {Case{"{devices=[2,4]<=[8]}", "{devices=[2,4]<=[8]}"},
                        Case{"{devices=[4,2]<=[2,4]T(1,0)}", "{devices=[4,2]<=[2,4]T(1,0)}"},
                        Case{"{devices=[2,1,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate}",
                             "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"},
                        Case{"{devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}}",
                             "{devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}}"},
                        Case{"{manual}", "{manual}"}, Case{"{replicated}", "{replicated}"},
                        Case{"{devices=[8,1]7,6,5,4,3,2,1,0}", nullptr}, Case{"{maximal device=3}", nullptr}}) {
    const auto s = ParseTileShardings(c.text);
    ASSERT_TRUE(s.ok()) << s.status();
    const DeviceMesh mesh = DeviceMesh::Fit(8, *s);
    const auto t = mesh.Express((*s)[0], 2);
    ASSERT_EQ(t.has_value(), c.again != nullptr) << c.text;
    if (t) {
      EXPECT_EQ(mesh.TextOf(*t), c.again);
    }
  }
}

TEST(Spmd, TextThatIsNoShardingIsRefused) {
  for (const char* text : {"", "{", "replicated", "{devices}", "{devices=[2,2]0,1,2}", "{devices=[2,2]0,1,2,2}",
                           "{devices=[2,2]<=[5]}", "{{replicated}", "{devices=[2]<=[2] last_tile_dims={odd}}"})
    EXPECT_FALSE(ParseTileShardings(text).ok()) << text;
}

}  // namespace
}  // namespace kiln
