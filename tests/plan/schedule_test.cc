// Schedules against an exhaustive search over all orders of small graphs.
#include "compiler/plan/schedule.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// Up to twelve instructions of very different sizes; sums of slices connect them.
std::string RandomGraph(std::mt19937_64* rng, int n) {
  std::string text = "HloModule r\nENTRY e {\n  v0 = f32[4] parameter(0)\n";
  for (int k = 1; k < n; ++k) {
    const int64_t size = 4 << ((*rng)() % 8);
    const int a = static_cast<int>((*rng)() % k), b = static_cast<int>((*rng)() % k);
    if (k == n - 1)
      absl::StrAppend(&text, "  ROOT v", k, " = f32[", size, "] custom-call(v", k - 1, ", v", a,
                      "), custom_call_target=\"f\"\n");
    else
      absl::StrAppend(&text, "  v", k, " = f32[", size, "] custom-call(v", a, ", v", b,
                      "), custom_call_target=\"f\"\n");
  }
  return text + "}\n";
}

// The smallest peak over every order, by trying them all.
int64_t SmallestPeak(const Computation* c, std::vector<Instruction*>* order, int64_t best) {
  if (order->size() == c->instructions().size()) return std::min(best, ScheduledPeak(c, *order));
  for (const auto& i : c->instructions()) {
    auto placed = [&](const Instruction* x) { return std::find(order->begin(), order->end(), x) != order->end(); };
    if (placed(i.get())) continue;
    bool ready = true;
    for (const Instruction* o : i->operands()) ready = ready && placed(o);
    if (!ready) continue;
    order->push_back(i.get());
    best = SmallestPeak(c, order, best);
    order->pop_back();
    if (i->Is(Opcode::Parameter)) break;  // takes nothing: its place does not matter
  }
  return best;
}

TEST(Schedule, SmallGraphsReachTheOptimum) {
  std::mt19937_64 rng(5);
  for (int round = 0; round < 60; ++round) {
    const std::string text = RandomGraph(&rng, 5 + round % 8);
    auto m = ParseHlo(text, "r.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    const Schedule s = ScheduleModule(**m);
    const Computation* e = (*m)->entry();
    std::vector<Instruction*> order;
    EXPECT_EQ(ScheduledPeak(e, s.at(e)), SmallestPeak(e, &order, INT64_MAX)) << text;
  }
}

// A result lies in the caller's memory, so that writing one early costs nothing.
TEST(Schedule, ResultsAreFree) {
  auto m = ParseHlo(R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[1024] custom-call(x), custom_call_target="f"
  b = f32[1024] custom-call(a), custom_call_target="f"
  ROOT t = (f32[1024], f32[1024]) tuple(a, b)
}
)",
                    "m.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  const Computation* e = (*m)->entry();
  EXPECT_EQ(ScheduledPeak(e, ScheduleModule(**m).at(e)), 0);
}

}  // namespace
}  // namespace kiln
