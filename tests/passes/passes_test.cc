// Pipelines and facts: orders that cannot hold, names that do not exist, and what the checkers of facts refuse.
#include "compiler/hlo/parser.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

TEST(Pipeline, AnOrderThatCannotHoldIsRefused) {
  auto m = ParseHlo("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", "t.hlo");
  Pipeline early("early", FindPass);
  early.Add("cpu-instruction-fusion").Add("layout-assignment");
  const absl::Status s = early.Run(**m, {});
  ASSERT_FALSE(s.ok());
  EXPECT_NE(std::string(s.message()).find("cpu-instruction-fusion needs LaidOut"), std::string::npos) << s.message();
  Pipeline late("late", FindPass);
  late.Add("layout-assignment").Add("cpu-instruction-fusion");
  EXPECT_TRUE(late.Run(**m, {}).ok());
}

TEST(Facts, EachCheckerRefuses) {
  auto core = ParseHlo(
      "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = s32[] get-dimension-size(x), dimensions={0} }",
      "t.hlo");
  EXPECT_EQ(CheckFacts(**core, fact::Core).code(), absl::StatusCode::kUnimplemented);
  auto bare = ParseHlo("HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] negate(x) }", "t.hlo");
  EXPECT_TRUE(CheckFacts(**bare, fact::Typed | fact::Core).ok());
  EXPECT_FALSE(CheckFacts(**bare, fact::LaidOut).ok());
  EXPECT_FALSE(CheckFacts(**bare, fact::Fused).ok());
}

TEST(Pipeline, UnknownPassesAreRefused) {
  auto m = ParseHlo("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", "t.hlo");
  PipelineOptions o;
  o.disabled = {"nonsense"};
  EXPECT_FALSE(CpuPipeline().Run(**m, o).ok());
  Pipeline p("p", FindPass);
  p.Add("nonsense");
  EXPECT_FALSE(p.Run(**m, {}).ok());
}

}  // namespace
}  // namespace kiln
