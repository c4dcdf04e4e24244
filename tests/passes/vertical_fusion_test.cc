// Where loops stop to grow, with limits that small programs reach.
#include "compiler/passes/fusion/vertical_fusion.h"

#include "absl/strings/str_cat.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

std::unique_ptr<Module> Fused(const std::string& body, int64_t instructions, int64_t alone = 0,
                              bool one_array = false) {
  auto m = ParseHlo(absl::StrCat("HloModule v\nENTRY e {\n", body, "}\n"), "v.hlo");
  if (!m.ok()) {
    ADD_FAILURE() << m.status();
    return nullptr;
  }
  PassContext ctx;
  FusionLimits limits;
  limits.instructions = instructions;
  limits.alone = alone;
  limits.one_array = one_array;
  EXPECT_TRUE(FuseVertically(**m, ctx, limits));
  EXPECT_TRUE(VerifyModule(**m).ok());
  return *std::move(m);
}

int64_t Count(const Module& m, Opcode opcode) {
  int64_t n = 0;
  for (const auto& i : m.entry()->instructions()) n += i->Is(opcode);
  return n;
}

// Two loops of which the first reads only what the second needs; both read `y`. With small limits both are full.
std::string Chain(const std::string& y) {
  return absl::StrCat("x = f32[64] parameter(0)\n k = f32[] parameter(1)\n z = f32[64] parameter(2)\n", y,
                      "\n s = f32[64] sine(x)\n a = f32[64] add(s, y)\n b = f32[64] multiply(a, y)\n",
                      " ROOT c = f32[64] subtract(b, x)\n");
}

TEST(VerticalFusion, FullLoopsTakeWhatIsTheSameEverywhere) {
  const auto m = Fused(Chain("y = f32[64] broadcast(k), dimensions={}"), 2);
  EXPECT_EQ(Count(*m, Opcode::Fusion), 2);
  EXPECT_EQ(Count(*m, Opcode::Broadcast), 0);
  const auto i = Fused(Chain("y = f32[64] iota(), iota_dimension=0"), 2);
  EXPECT_EQ(Count(*i, Opcode::Fusion), 2);
  EXPECT_EQ(Count(*i, Opcode::Iota), 0);
}

TEST(VerticalFusion, FullLoopsLeaveArrays) {
  const auto m = Fused(Chain("y = f32[64] negate(z)"), 2);
  EXPECT_EQ(Count(*m, Opcode::Fusion), 2);
  EXPECT_EQ(Count(*m, Opcode::Negate), 1);
}

TEST(VerticalFusion, FullLoopsGoOnWithWhatTheyAloneRead) {
  const auto m = Fused(Chain("y = f32[64] negate(z)"), 2, 100);
  EXPECT_EQ(Count(*m, Opcode::Fusion), 1);
  EXPECT_EQ(Count(*m, Opcode::Negate), 0);
}

// Of the sum of two arrays one reader takes a few elements.
TEST(VerticalFusion, WhatOneReaderTakesWholeIsComputedInAll) {
  const auto body = [](int64_t taken) {
    return absl::StrCat("x = f32[4096] parameter(0)\n z = f32[4096] parameter(1)\n a = f32[4096] add(x, z)\n",
                        " s = f32[", taken, "] slice(a), slice={[0:", taken, "]}\n n = f32[", taken,
                        "] negate(s)\n m = f32[4096] multiply(a, x)\n ROOT t = (f32[", taken,
                        "], f32[4096]) tuple(n, m)\n");
  };
  EXPECT_EQ(Count(*Fused(body(64), 100, 0, true), Opcode::Add), 0);
  EXPECT_EQ(Count(*Fused(body(2048), 100, 0, true), Opcode::Add), 1);
}

}  // namespace
}  // namespace kiln
