// The graph: what moves along when an instruction takes another's place.
#include "compiler/hlo/instruction.h"

#include <algorithm>

#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

Instruction* Find(const Module& m, absl::string_view name) {
  for (const auto& i : m.entry()->instructions())
    if (i->name() == name) return i.get();
  return nullptr;
}

bool WaitsFor(const Instruction* i, const Instruction* p) {
  const auto& waits = i->control_predecessors();
  return std::find(waits.begin(), waits.end(), p) != waits.end();
}

constexpr char kChain[] = R"(HloModule chain

ENTRY main {
  x = f32[4] parameter(0)
  first = f32[4] abs(x)
  value = f32[4] exponential(x)
  middle = f32[4] negate(value), control-predecessors={first}
  same = f32[4] exponential(x), control-predecessors={middle}
  user = f32[4] sine(same)
  ROOT out = (f32[4], f32[4], f32[4]) tuple(first, middle, user)
}
)";

TEST(Instruction, WhatTakesAPlaceWaitsForWhatThePlaceWaitedFor) {
  auto m = ParseHlo(kChain, "chain.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  Instruction* value = Find(**m, "value");
  Find(**m, "same")->ReplaceAllUsesWith(value);
  // It is computed before `middle`, so its user waits for that; but it can still wait for `first`.
  EXPECT_TRUE(WaitsFor(value, Find(**m, "first")));
  EXPECT_FALSE(WaitsFor(value, Find(**m, "middle")));
  EXPECT_TRUE(WaitsFor(Find(**m, "user"), Find(**m, "middle")));
}

TEST(Instruction, ReplacingNeverClosesACircle) {
  auto m = ParseHlo(kChain, "chain.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  Instruction *value = Find(**m, "value"), *first = Find(**m, "first");
  value->AddControlDependencyTo(first);
  Find(**m, "same")->ReplaceAllUsesWith(value);
  EXPECT_FALSE(WaitsFor(value, first));
  EXPECT_TRUE(WaitsFor(Find(**m, "user"), first));
}

}  // namespace
}  // namespace kiln
