// Bisection finds a planted wrong rewrite among right ones, and nothing where nothing is wrong.
#include "aot/tools/bisect.h"

#include "compiler/hlo/parser.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr char kProgram[] = R"(HloModule m
ENTRY e {
  x = s32[4] parameter(0)
  y = s32[4] parameter(1)
  a = s32[4] add(x, y)
  b = s32[4] add(a, x)
  c = s32[4] subtract(b, y)
  d = s32[4] subtract(y, c)
  ROOT r = s32[4] multiply(c, d)
})";

// Swaps the operands of additions, which is right, and of the second subtraction, which is not.
absl::StatusOr<bool> Swap(Module& m, PassContext& ctx) {
  bool changed = false;
  int subtractions = 0;
  for (Instruction* i : m.entry()->PostOrder()) {
    const bool second = i->Is(Opcode::Subtract) && ++subtractions == 2;
    if ((!i->Is(Opcode::Add) && !second) || !ctx.Take()) continue;
    Instruction *a = i->operand(0), *b = i->operand(1);
    i->ReplaceOperand(0, b);
    i->ReplaceOperand(1, a);
    changed = true;
  }
  return changed;
}

const PassInfo kPlanted = {"planted", Swap, "", fact::None, fact::None, fact::None};

const PassInfo* Find(absl::string_view name) { return name == "planted" ? &kPlanted : FindPass(name); }

std::vector<Literal> Arguments() {
  std::vector<Literal> out;
  for (int k = 1; k < 3; ++k) {
    Literal l(Shape::Array(PrimitiveType::S32, {4}));
    for (int64_t i = 0; i < 4; ++i) {
      Element e;
      e.i = 10 * k + i;
      l.Set(i, e);
    }
    out.push_back(l);
  }
  return out;
}

TEST(Bisect, FindsThePassAndTheRewrite) {
  auto m = ParseHlo(kProgram, "m");
  ASSERT_TRUE(m.ok()) << m.status();
  Pipeline p("test", Find);
  p.Add("algsimp").Add("planted").Add("dce");
  auto r = Bisect(**m, p, Find, Arguments(), 0);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->pass, "planted");
  EXPECT_EQ(r->rewrite, 3);
  EXPECT_NE(r->difference.find("result 0"), std::string::npos);
  ASSERT_TRUE(r->before && r->after);
}

TEST(Bisect, FindsNothingInARightPipeline) {
  auto m = ParseHlo(kProgram, "m");
  ASSERT_TRUE(m.ok()) << m.status();
  auto r = Bisect(**m, CpuPipeline(), FindPass, Arguments(), 0);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->pass, "");
}

}  // namespace
}  // namespace kiln
