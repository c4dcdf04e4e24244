// Pipelines and facts: orders that cannot hold, names that do not exist, and what the checkers of facts refuse.
#include <algorithm>

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

// Layouts agree wherever a value passes from one instruction to another.
TEST(Facts, LaidOutFindsEachDisagreement) {
  const auto check = [](const std::string& body, const std::string& before = "") {
    auto m =
        ParseHlo(absl::StrCat("HloModule m\n", before, "ENTRY e { x = f32[4,6]{1,0} parameter(0)\n y = f32[4,6]{0,1} ",
                              "parameter(1)\n k = pred[] parameter(2)\n ", body, " }"),
                 "t.hlo");
    return m.ok() ? CheckFacts(**m, fact::LaidOut) : m.status();
  };
  const std::string same = "f { p = f32[4,6]{1,0} parameter(0)\n ROOT r = f32[4,6]{1,0} negate(p) }\n",
                    other = "f { p = f32[4,6]{0,1} parameter(0)\n ROOT r = f32[4,6]{0,1} negate(p) }\n",
                    no = "c { s = (f32[4,6]{1,0}) parameter(0)\n ROOT r = pred[] constant(false) }\n",
                    step =
                        "b { s = (f32[4,6]{0,1}) parameter(0)\n g = f32[4,6]{0,1} get-tuple-element(s), index=0\n "
                        "ROOT t = (f32[4,6]{0,1}) tuple(g) }\n";
  EXPECT_TRUE(check("ROOT r = f32[4,6]{1,0} add(x, x)").ok());
  EXPECT_FALSE(check("ROOT r = f32[4,6]{1,0} add(x, y)").ok());
  EXPECT_TRUE(check("ROOT t = (f32[4,6]{1,0}, f32[4,6]{0,1}) tuple(x, y)").ok());
  EXPECT_FALSE(check("ROOT t = (f32[4,6]{1,0}, f32[4,6]{1,0}) tuple(x, y)").ok());
  EXPECT_FALSE(check("t = (f32[4,6]{1,0}) tuple(x)\n ROOT g = f32[4,6]{0,1} get-tuple-element(t), index=0").ok());
  EXPECT_TRUE(check("ROOT f = f32[4,6]{1,0} fusion(x), kind=kLoop, calls=f", same).ok());
  EXPECT_FALSE(check("ROOT f = f32[4,6]{1,0} fusion(x), kind=kLoop, calls=f", other).ok());
  EXPECT_TRUE(check("ROOT c = f32[4,6]{1,0} conditional(k, x, x), true_computation=f, false_computation=f", same).ok());
  EXPECT_FALSE(
      check("ROOT c = f32[4,6]{1,0} conditional(k, x, x), true_computation=f, false_computation=f", other).ok());
  EXPECT_FALSE(
      check("t = (f32[4,6]{1,0}) tuple(x)\n ROOT w = (f32[4,6]{1,0}) while(t), condition=c, body=b", no + step).ok());
}

// What code generation needs of a pass is asked for by name where the pass was left out.
TEST(Facts, NameThePassThatIsMissing) {
  const std::pair<const char*, const char*> programs[] = {
      {"convolution-canonicalization",
       "x = f32[1,2,4,4] parameter(0)\n k = f32[3,2,1,1] parameter(1)\n"
       "ROOT c = f32[1,3,4,4] convolution(x, k), window={size=1x1}, dim_labels=bf01_oi01->bf01"},
      {"dot-decomposer",
       "x = f32[4,4] parameter(0)\n"
       "ROOT d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {"optimization-barrier-expander", "x = f32[4] parameter(0)\n ROOT b = f32[4] opt-barrier(x)"},
      {"dynamic-padder",
       "x = f32[4] parameter(0)\n n = s32[] constant(2)\n"
       "ROOT d = f32[<=4] set-dimension-size(x, n), dimensions={0}"},
  };
  for (const auto& [pass, body] : programs) {
    auto m = ParseHlo(absl::StrCat("HloModule m\nENTRY e { ", body, " }"), "t.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    PipelineOptions without;
    without.disabled = {pass};
    ASSERT_TRUE(CpuPipeline().Run(**m, without).ok());
    const absl::Status s = CheckFacts(**m, fact::Core | fact::LaidOut | fact::Fused);
    EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented) << pass;
    EXPECT_NE(s.message().find(absl::StrCat(pass, " is needed")), absl::string_view::npos) << s;
  }
}

// outfeed, then the copy: whatever the copy becomes still comes after.
TEST(ControlEdges, MoveToWhatTakesThePlace) {
  constexpr char kText[] = R"(HloModule m
ENTRY e {
  p = f32[] parameter(0)
  t = token[] after-all()
  o = token[] outfeed(p, t), outfeed_config="x"
  c = f32[] constant(2)
  k = f32[] copy(c), control-predecessors={o}
  u = token[] after-all()
  q = token[] outfeed(k, u), outfeed_config="y"
  ROOT r = f32[] negate(p)
})";
  for (const PassInfo& pass : AllPasses()) {
    const std::string name = pass.name;
    if (name == "control-dep-remover" || name == "despecializer") continue;  // which drop them on purpose
    auto m = ParseHlo(kText, "t.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    PassContext ctx;
    if (!pass.run(**m, ctx).ok()) continue;
    const Instruction *first = nullptr, *second = nullptr;
    for (const auto& i : (*m)->entry()->instructions())
      if (i->Is(Opcode::Outfeed))
        (i->attrs().outfeed_config->text.find('x') != std::string::npos ? first : second) = i.get();
    ASSERT_TRUE(first && second) << pass.name;
    std::vector<const Instruction*> after = {first};
    for (size_t k = 0; k < after.size(); ++k)
      for (const auto* list : {&after[k]->users(), &after[k]->control_successors()})
        for (const Instruction* i : *list)
          if (std::find(after.begin(), after.end(), i) == after.end()) after.push_back(i);
    EXPECT_NE(std::find(after.begin(), after.end(), second), after.end()) << pass.name;
  }
}

TEST(Pipeline, SaysThatAFixpointWasCut) {
  auto m = ParseHlo("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", "t.hlo");
  std::vector<std::string> notes;
  PipelineOptions o;
  o.on_note = [&](const std::string& n) { notes.push_back(n); };
  static const PassInfo again = {"again",    [](Module&, PassContext&) -> absl::StatusOr<bool> { return true; },
                                 "",         fact::None,
                                 fact::None, fact::None};
  Pipeline p("p", [](absl::string_view) { return &again; });
  p.Begin({"repeated", "", true, {}}).Add("again");
  ASSERT_TRUE(p.Run(**m, o).ok());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("stage repeated"), std::string::npos) << notes[0];
  o.verify_each = true;  // as under test
  EXPECT_EQ(p.Run(**m, o).code(), absl::StatusCode::kInternal);
}

TEST(Pipeline, RunsEveryPassThatIsNotShelvedAndSaysWhyThere) {
  std::vector<std::string> used;
  for (const Pipeline& p : {CpuPipeline(), GpuPipeline({.deterministic = true}), GpuPipeline({.nccl = false})})
    for (const Pipeline::Stage& stage : p.stages()) {
      EXPECT_FALSE(stage.holds.empty()) << stage.name;
      for (const Pipeline::Step& step : stage.steps) {
        EXPECT_FALSE(step.why.empty()) << step.pass;
        used.push_back(step.pass);
      }
    }
  for (const PassInfo& pass : AllPasses())
    EXPECT_EQ(pass.shelved == nullptr, std::find(used.begin(), used.end(), pass.name) != used.end()) << pass.name;
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
