// What a config changes about the order of passes, and what of it is refused.
#include <algorithm>

#include "aot/compile.h"
#include "aot/report/explanation.h"
#include "compiler/hlo/parser.h"
#include "compiler/pipeline/changes.h"
#include "compiler/pipeline/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> PassesOf(const Pipeline& p, const std::string& stage) {
  std::vector<std::string> out;
  for (const Pipeline::Stage& s : p.stages())
    for (const Pipeline::Step& step : s.steps)
      if (s.name == stage) out.push_back(step.pass);
  return out;
}

absl::StatusOr<Pipeline> ChangedBy(const std::string& config) {
  ASSIGN_OR_RETURN(const CompileOptions o, ParseConfig(config, "c"));
  return Changed(CpuPipeline(), o.pass_changes);
}

std::string ErrorOf(const std::string& config) { return std::string(ParseConfig(config, "c").status().message()); }

TEST(PipelineChanges, EnableAPassAtAPlace) {
  const std::vector<std::string> usual = PassesOf(CpuPipeline(), "contractions");
  auto p = ChangedBy("passes { enable: \"broadcast_canonicalizer\" after: \"dot_decomposer\" }");
  ASSERT_TRUE(p.ok()) << p.status();
  const auto passes = PassesOf(*p, "contractions");
  ASSERT_EQ(passes.size(), usual.size() + 1);
  const auto at = std::find(passes.begin(), passes.end(), "dot-decomposer");
  EXPECT_EQ(*(at + 1), "broadcast-canonicalizer");
  p = ChangedBy("passes { enable: \"dce\" before: \"topk-rewriter\" } passes { enable: \"cse\" stage: \"forms\" }");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(PassesOf(*p, "forms"), ElementsAre("dce", "topk-rewriter", "cse"));
  // A stage says which of several.
  p = ChangedBy("passes { enable: \"broadcast-canonicalizer\" before: \"cse\" stage: \"simplification-2\" }");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(PassesOf(*p, "simplification-2")[2], "broadcast-canonicalizer");
}

TEST(PipelineChanges, ReplacePassesAndStages) {
  auto p = ChangedBy("passes { replace: \"simplification-2\" with: \"dce\" with: \"cse\" }");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(PassesOf(*p, "simplification-2"), ElementsAre("dce", "cse"));
  p = ChangedBy("passes { replace: \"cse\" with: \"cse\" with: \"dce\" stage: \"simplification-3\" }");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(PassesOf(*p, "simplification-3"), ElementsAre("algsimp", "cse", "dce", "dce"));
  EXPECT_EQ(PassesOf(*p, "simplification-2"), PassesOf(CpuPipeline(), "simplification-2"));
}

// How often `pass` runs over a program that is simplified in one round.
int64_t RunsOf(const std::string& pass, const std::string& config) {
  const auto p = ChangedBy(config);
  EXPECT_TRUE(p.ok()) << p.status();
  auto m = ParseHlo(
      "HloModule m\nENTRY e { x = s32[8] parameter(0)\n z = s32[] constant(1)\n b = s32[8] broadcast(z), "
      "dimensions={}\n"
      " y = s32[8] multiply(x, b)\n ROOT r = s32[8] subtract(y, b) }",
      "t.hlo");
  std::vector<PassRecord> records;
  EXPECT_TRUE(p->Run(**m, {}, &records).ok());
  return std::count_if(records.begin(), records.end(), [&](const PassRecord& r) { return r.pass == pass; });
}

TEST(PipelineChanges, RepeatPassesAndStages) {
  const int64_t once = RunsOf("simplify-sorts", "passes { repeat: \"simplification\" rounds: 1 }");
  EXPECT_EQ(once, 1);
  EXPECT_GT(RunsOf("simplify-sorts", ""), once);
  EXPECT_EQ(RunsOf("simplify-sorts", "passes { repeat: \"simplification\" rounds: 2 }"), 2);
  // A stage that usually runs once, and a pass that ends as soon as it changes nothing.
  EXPECT_EQ(RunsOf("transpose-folding", ""), 1);
  EXPECT_EQ(RunsOf("transpose-folding", "passes { repeat: \"transpose-folding\" rounds: 7 }"), 1);
  EXPECT_GT(RunsOf("algsimp", "passes { repeat: \"algsimp\" }"), RunsOf("algsimp", ""));
}

TEST(PipelineChanges, ReachThePipelineThatTheyName) {
  const std::string config = "cpu_levels: \"v3\" gpu { targets: \"sm_90\" } ";
  // gemv-rewriter is of the GPU's.
  auto o = ParseConfig(config + "passes { enable: \"cse\" after: \"gemv-rewriter\" }", "c");
  ASSERT_TRUE(o.ok()) << o.status();
  EXPECT_EQ(PassesOf(*Changed(CpuPipeline(), o->pass_changes), "contractions"),
            PassesOf(CpuPipeline(), "contractions"));
  EXPECT_NE(PassesOf(*Changed(GpuPipeline(), o->pass_changes), "contractions"),
            PassesOf(GpuPipeline(), "contractions"));
  o = ParseConfig(config + "passes { enable: \"dce\" stage: \"forms\" pipeline: \"cpu\" }", "c");
  ASSERT_TRUE(o.ok()) << o.status();
  EXPECT_EQ(PassesOf(*Changed(GpuPipeline(), o->pass_changes), "forms"), PassesOf(GpuPipeline(), "forms"));
}

TEST(PipelineChanges, AreRefusedWithPlaceAndReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"passes { enable: \"dces\" stage: \"forms\" }", "c:1:1: error: no pass is named 'dces'; did you mean dce?"},
      {"passes { enable: \"dce\" stage: \"form\" }", "the cpu pipeline has no stage 'form'; did you mean forms?"},
      {"passes { repeat: \"simplificaton\" }", "is named 'simplificaton'; did you mean simplification?"},
      {"passes { enable: \"dce\" }", "enable needs a place"},
      {"passes { enable: \"dce\" after: \"cse\" }", "'cse' stands in the stages simplification, simplification-2"},
      {"passes { enable: \"dce\" after: \"cse\" before: \"algsimp\" }", "contradict"},
      {"passes { enable: \"dce\" after: \"gemv-rewriter\" }", "the cpu pipeline has no pass 'gemv-rewriter'"},
      {"passes { enable: \"dce\" stage: \"forms\" pipeline: \"gpu\" }", "the config asks for no gpu program"},
      {"passes { enable: \"dce\" stage: \"forms\" pipeline: \"tpu\" }", "'tpu' is unknown"},
      {"passes { enable: \"dce\" stage: \"forms\" rounds: 2 }", "rounds is of repeat"},
      {"passes { repeat: \"cse\" rounds: -1 }", "rounds is -1"},
      {"passes { repeat: \"cse\" with: \"dce\" }", "with is of replace"},
      {"passes { stage: \"forms\" }", "enable, repeat or replace"},
      {"debug { disable_passes: \"algsim\" }", "no pass is named 'algsim'; did you mean algsimp?"},
  };
  for (const auto& [config, error] : cases) EXPECT_THAT(ErrorOf(config), HasSubstr(error)) << config;
}

TEST(PipelineChanges, ThatNoOrderOfFactsAllowsAreRefused) {
  EXPECT_THAT(ErrorOf("passes { enable: \"reshape-mover\" after: \"layout-assignment\" }"),
              HasSubstr("reshape-decomposer needs LaidOut, which reshape-mover before it breaks"));
  EXPECT_THAT(ErrorOf("passes { enable: \"reshape-mover\" stage: \"fusion\" }"),
              HasSubstr("the cpu pipeline would end without LaidOut, Fused"));
  EXPECT_THAT(ErrorOf("passes { replace: \"layout\" with: \"dce\" }"), HasSubstr("needs LaidOut"));
  EXPECT_THAT(ErrorOf("passes { enable: \"cpu-row-fusion\" stage: \"forms\" }"), HasSubstr("needs LaidOut"));
  // One change may mend what another breaks.
  EXPECT_EQ(ErrorOf("passes { replace: \"fusion-wrapper\" with: \"cse\" stage: \"fusion\" } "
                    "passes { enable: \"fusion-wrapper\" after: \"cpu-instruction-fusion\" }"),
            "");
}

TEST(PipelineChanges, AreSaidInHeaderManifestAndReport) {
  auto o = ParseConfig(
      "cpu_levels: \"v3\" debug { disable_passes: \"topk-rewriter\" } "
      "passes { enable: \"dce\" stage: \"forms\" } passes { repeat: \"simplification\" rounds: 2 }",
      "c");
  ASSERT_TRUE(o.ok()) << o.status();
  const char* text = "HloModule m\nENTRY e { x = f32[8] parameter(0)\n ROOT r = f32[8] add(x, x) }";
  const auto compiled = Compile(std::move(*ParseHlo(text, "t.hlo")), *o);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_THAT(compiled->code.c_header,
              HasSubstr("// Of the usual passes the config disables topk-rewriter, enables dce at "
                        "the end of stage forms, repeats simplification 2 times at most.\n"));
  EXPECT_THAT(compiled->code.manifest,
              HasSubstr("\"pass_changes\":[\"disables topk-rewriter\",\"enables dce at the end of stage forms\","));
  const auto explained = Explain(std::move(*ParseHlo(text, "t.hlo")), *o);
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_THAT(ExplainInText(*explained), HasSubstr("the config enables dce at the end of stage forms\n"));
}

}  // namespace
}  // namespace kiln
