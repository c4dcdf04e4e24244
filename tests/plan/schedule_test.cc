// Schedules against an exhaustive search over all orders of small graphs.
#include "compiler/plan/schedule.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/parser.h"
#include "compiler/plan/overlap.h"
#include "compiler/plan/written_order.h"
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

std::vector<std::string> Names(const std::vector<Instruction*>& order) {
  std::vector<std::string> out;
  for (const Instruction* i : order)
    if (i->operand_count() > 0 && InfoOf(i->opcode()).lowering != Lowering::Free) out.push_back(i->name());
  return out;
}

// What the entry of `text` runs, sends and receives moved.
std::vector<std::string> NamesOverlapped(const std::string& text) {
  auto m = ParseHlo(text, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  const Computation* e = (*m)->entry();
  Order given;
  for (const auto& i : e->instructions()) given.push_back(i.get());
  return Names(Overlapped(given, [&](const Order& o) { return ScheduledPeak(e, o); }));
}

// Work that does not need a message runs while it is under way; sends go as soon as their data is there.
TEST(Schedule, SendsGoEarlyAndReceivesWaitLate) {
  EXPECT_EQ(NamesOverlapped(R"(HloModule m
ENTRY e {
  x = f32[256] parameter(0)
  n = token[] after-all()
  a = f32[256] negate(x)
  b = f32[256] negate(a)
  s = (f32[256], u32[], token[]) send(a, n), channel_id=2
  r = (f32[256], u32[], token[]) recv(n), channel_id=1
  d = f32[256] get-tuple-element(r), index=0
  c = f32[256] negate(b)
  u = f32[256] add(c, d)
  ROOT t = (f32[256], f32[256]) tuple(u, d)
}
)"),
            (std::vector<std::string>{"a", "s", "b", "c", "r", "u"}));
}

// Devices that wait for one another in turns go on doing so.
TEST(Schedule, MessagesKeepTheirOrder) {
  EXPECT_EQ(NamesOverlapped(R"(HloModule m
ENTRY e {
  x = f32[256] parameter(0)
  n = token[] after-all()
  r = (f32[256], u32[], token[]) recv(n), channel_id=1
  d = f32[256] get-tuple-element(r), index=0
  a = f32[256] negate(x)
  b = f32[256] negate(a)
  s = (f32[256], u32[], token[]) send(a, n), channel_id=2
  ROOT u = f32[256] add(b, d)
}
)"),
            (std::vector<std::string>{"a", "r", "s", "b", "u"}));
}

// In the order of the text, though another takes less memory; a fusion stands where what it holds stood.
TEST(Schedule, AWrittenOrderIsFollowed) {
  const auto written = ParseHlo(R"(HloModule m, is_scheduled=true
ENTRY e {
  x = f32[4] parameter(0)
  c = f32[1024] custom-call(x), custom_call_target="f"
  a = f32[1024] custom-call(x), custom_call_target="f"
  d = f32[4] custom-call(c), custom_call_target="f"
  b = f32[4] custom-call(a), custom_call_target="f"
  n = f32[4] negate(b)
  ROOT t = (f32[4], f32[4]) tuple(d, n)
}
)",
                                "m.hlo");
  const auto fused = ParseHlo(R"(HloModule m
f {
  p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p)
}
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[1024] custom-call(x), custom_call_target="f"
  b = f32[4] custom-call(a), custom_call_target="f"
  fusion = f32[4] fusion(b), kind=kLoop, calls=f
  c = f32[1024] custom-call(x), custom_call_target="f"
  d = f32[4] custom-call(c), custom_call_target="f"
  ROOT t = (f32[4], f32[4]) tuple(d, fusion)
}
)",
                              "m.hlo");
  ASSERT_TRUE(written.ok() && fused.ok()) << written.status() << fused.status();
  const NamedOrder order = Followed(WrittenOrderOf(**written), **fused);
  const Computation* e = (*fused)->entry();
  EXPECT_EQ(Names(ScheduleModule(**fused, ResultMemory::kFree, &order).at(e)),
            (std::vector<std::string>{"c", "a", "d", "b", "fusion"}));
  EXPECT_NE(Names(ScheduleModule(**fused).at(e)), (std::vector<std::string>{"c", "a", "d", "b", "fusion"}));
}

}  // namespace
}  // namespace kiln
