// The reports say what the plan holds; the page is well formed.
#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "aot/debug/source_map.h"
#include "aot/report/explanation.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr char kProgram[] = R"(HloModule shop
cond {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[64,64]) tuple(j, y)
}
ENTRY e {
  x = f32[64,64] parameter(0)
  z = s32[] constant(0)
  a = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = (s32[], f32[64,64]) tuple(z, a)
  w = (s32[], f32[64,64]) while(t), condition=cond, body=body
  b = f32[64,64] get-tuple-element(w), index=1
  ROOT r = f32[64,64] tanh(b)
}
)";

absl::StatusOr<Explanation> ExplainProgram(int64_t limit = 0) {
  ASSIGN_OR_RETURN(auto m, ParseHlo(kProgram, "shop.hlo"));
  CompileOptions o;
  o.model.max_arena_bytes = limit;
  return Explain(std::move(m), o);
}

TEST(Report, HoldsWhatThePlanHolds) {
  auto e = ExplainProgram();
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->name, "shop");
  EXPECT_EQ(e->arena_use.size(), e->ticks.size());
  EXPECT_LE(e->arena_use[e->peak_tick], e->temp_bytes);
  int64_t products = 0;
  for (const auto& k : e->kernels) {
    if (k.opcode != "dot") continue;
    products += k.runs;
    EXPECT_EQ(k.flops, 2 * 64 * 64 * 64);
    EXPECT_EQ(k.bytes, 3 * 64 * 64 * 4);
  }
  EXPECT_EQ(products, 1 + 7);
  double ms = 0;
  for (const auto& p : e->passes) ms += p.ms;
  EXPECT_GT(ms, 0);
}

TEST(Report, OfAGpuWhereNoCpuIsAskedFor) {
  auto m = ParseHlo(kProgram, "shop.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  CompileOptions o;
  o.cpu.levels.clear();
  o.gpu.targets = {"sm_90"};
  auto e = Explain(std::move(*m), o);
  ASSERT_TRUE(e.ok()) << e.status();
  const std::string text = ExplainInText(*e);
  for (const char* part : {"(sm_90)", "while-init-splitter", "triton-gemm-rewriter"})
    EXPECT_TRUE(absl::StrContains(text, part)) << part << "\n" << text;
  int64_t products = 0;
  for (const auto& k : e->kernels) {
    if (k.opcode != "dot") continue;
    ++products;
    EXPECT_GE(k.flops, 2 * 64 * 64 * 64);
  }
  EXPECT_EQ(products, 2);
}

// Of loops over as many numbers, and a product of narrower ones.
TEST(Report, EstimatesKnowWhatIsSlow) {
  const auto us = [](const std::string& body) {
    auto m = ParseHlo(
        "HloModule m\nless { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
        " ROOT l = pred[] compare(a, b), direction=LT }\nENTRY e { " +
            body + " }\n",
        "m.hlo");
    EXPECT_TRUE(m.ok()) << m.status();
    auto e = Explain(std::move(*m), {});
    EXPECT_TRUE(e.ok()) << e.status();
    double sum = 0;
    for (const auto& k : e->kernels) sum += k.estimated_us;
    return sum;
  };
  const double add = us("x = f32[4096] parameter(0)\n ROOT r = f32[4096] add(x, x)");
  const double sine = us("x = f32[4096] parameter(0)\n ROOT r = f32[4096] sine(x)");
  const double sort = us("x = f32[4096] parameter(0)\n ROOT r = f32[4096] sort(x), dimensions={0}, to_apply=less");
  EXPECT_LT(add, sine);
  EXPECT_LT(sine, sort);
  const std::string operands =
      " parameter(0)\n ROOT r = $[512,512] dot(x, x), lhs_contracting_dims={1},"
      " rhs_contracting_dims={0}";
  const auto product = [&](const char* from, const char* to) {
    return us(absl::StrCat("x = ", from, "[512,512]", absl::StrReplaceAll(operands, {{"$", to}})));
  };
  EXPECT_LT(product("s8", "s32"), product("f32", "f32"));
}

TEST(Report, TextNamesThePeakAndTheKernels) {
  auto e = ExplainProgram(1 << 20);
  ASSERT_TRUE(e.ok()) << e.status();
  const std::string text = ExplainInText(*e);
  for (const char* part :
       {"of the 1048576 allowed", "peak: ", "kernels by estimated time", "7 times", "layout-assignment"})
    EXPECT_TRUE(absl::StrContains(text, part)) << part << "\n" << text;
}

// Every tag that is opened is closed, in order.
TEST(Report, ThePageIsWellFormed) {
  auto e = ExplainProgram();
  ASSERT_TRUE(e.ok()) << e.status();
  e->name = "<shop>";
  const std::string page = ExplainInHtml(*e);
  EXPECT_TRUE(absl::StrContains(page, "&lt;shop&gt;"));
  for (const char* id : {"memory", "buffers", "flame", "kernels", "passes", "owners"})
    EXPECT_TRUE(absl::StrContains(page, absl::StrCat("id=\"", id, "\""))) << id;
  for (const char* outside : {"<script ", "<link", "http:", "https:", "src="})
    EXPECT_FALSE(absl::StrContains(page, outside)) << outside;
  std::vector<std::string> open;
  for (size_t k = page.find('<'); k != std::string::npos; k = page.find('<', k + 1)) {
    const size_t end = page.find('>', k);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = page.substr(k + 1, end - k - 1);
    if (tag[0] == '!' || tag.back() == '/' || absl::StartsWith(tag, "meta")) continue;
    size_t n = tag[0] == '/';
    while (n < tag.size() && std::isalnum(static_cast<unsigned char>(tag[n]))) ++n;
    if (tag[0] != '/') {
      open.push_back(tag.substr(0, n));
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    EXPECT_EQ(open.back(), tag.substr(1, n - 1));
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

// What JAX 0.10 writes: frames in tables at the head.
constexpr char kFrames[] = R"(HloModule framed

FileNames
1 "/src/other.py"
2 "/src/model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=2}
2 {file_name_id=2 function_name_id=1 line=17 end_line=17 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

ENTRY e {
  x = f32[8] parameter(0)
  framed = f32[8] negate(x), metadata={op_name="jit(f)/layer0/neg" stack_frame_id=2}
  stated = f32[8] abs(framed), metadata={op_name="a \"b\"" source_file="m.py" source_line=5}
  ROOT bare = f32[8] sign(stated)
}
)";

TEST(SourceMap, ReadsFramesMetadataOrTheModulesOwnLines) {
  auto m = ParseHlo(kFrames, "folder/framed.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  const SourceMap sources(**m);
  const Instruction* bare = (*m)->entry()->root();
  const SourcePlace stated = sources.Of(bare->operand(0)), framed = sources.Of(bare->operand(0)->operand(0));
  EXPECT_EQ(framed.op_name, "jit(f)/layer0/neg");
  EXPECT_EQ(framed.file, "/src/model.py");
  EXPECT_EQ(framed.line, 17);
  EXPECT_EQ(stated.op_name, "a \"b\"");
  EXPECT_EQ(stated.file, "m.py");
  EXPECT_EQ(stated.line, 5);
  EXPECT_EQ(sources.Of(bare).op_name, "");
  EXPECT_EQ(sources.Of(bare).file, "framed.hlo");
  EXPECT_EQ(sources.Of(bare).line, 22);
}

TEST(SourceMap, WhatOnlyMovesIsItsReaders) {
  auto m = ParseHlo(R"(HloModule m

ENTRY e {
  x = f32[8,4] parameter(0)
  turned = f32[4,8] transpose(x), dimensions={1,0}
  flat = f32[32] reshape(turned)
  sum = f32[4,8] add(turned, turned)
  ROOT named = f32[32] abs(flat), metadata={op_name="jit(f)/abs" source_file="m.py" source_line=5}
})",
                    "m.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  const SourceMap sources(**m);
  const Instruction* turned = (*m)->entry()->root()->operand(0)->operand(0);
  EXPECT_EQ(sources.Of(turned).op_name, "jit(f)/abs");
  EXPECT_EQ(sources.Of(turned).line, 5);
  for (const Instruction* u : turned->users())
    if (u->Is(Opcode::Add)) {
      EXPECT_EQ(sources.Of(u).op_name, "");
    }
}

}  // namespace
}  // namespace kiln
