// Exchanges beside the work: orders, and memory that stays.
#include "compiler/plan/flight.h"

#include <functional>

#include "absl/strings/str_join.h"
#include "compiler/hlo/parser.h"
#include "compiler/plan/memory_plan.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

std::unique_ptr<Module> Parsed(const std::string& text) {
  auto m = ParseHlo(text, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  return std::move(*m);
}

// What the entry runs, in the order that `ordered` makes of the text's.
std::string Ordered(const std::string& text, const std::function<Order(const Order&)>& ordered) {
  const std::unique_ptr<Module> m = Parsed(text);
  Order given;
  for (const auto& i : m->entry()->instructions()) given.push_back(i.get());
  std::vector<std::string> names;
  for (const Instruction* i : ordered(given))
    if (i->operand_count() > 0 && InfoOf(i->opcode()).lowering != Lowering::Free) names.push_back(i->name());
  return absl::StrJoin(names, " ");
}

std::string Moved(const std::string& text, bool ahead, bool behind, int64_t least_bytes = 1024) {
  return Ordered(text, [&](const Order& given) { return InFlight(given, {least_bytes, ahead, behind}); });
}

// Two gathers of slices, each with a product behind it.
constexpr char kGathers[] = R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[4,32] parameter(0)
  v = f32[2,16,32] parameter(1)
  s1 = f32[1,16,32] slice(v), slice={[0:1], [0:16], [0:32]}
  r1 = f32[16,32] bitcast(s1)
  g1 = f32[32,32] all-gather(r1), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  d1 = f32[4,32] dot(x, g1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s2 = f32[1,16,32] slice(v), slice={[1:2], [0:16], [0:32]}
  r2 = f32[16,32] bitcast(s2)
  g2 = f32[32,32] all-gather(r2), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  ROOT d2 = f32[4,32] dot(d1, g2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";

TEST(Flight, TheNextExchangeBeginsBeforeTheWorkOfTheOneBefore) {
  EXPECT_EQ(Moved(kGathers, true, false), "s1 g1 s2 g2 d1 d2");
  EXPECT_EQ(Moved(kGathers, false, true), "s1 g1 s2 g2 d1 d2");  // the work waits for it, which is the same here
  EXPECT_EQ(Moved(kGathers, true, true, 1 << 20), "s1 g1 d1 s2 g2 d2");  // they are small
}

// What kept an exchange from beginning ahead of its use lies behind it then.
TEST(Flight, TheNextExchangeBeginsBehindAFence) {
  constexpr char kFence[] = R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[4,32] parameter(0)
  v = f32[2,16,32] parameter(1)
  s1 = f32[1,16,32] slice(v), slice={[0:1], [0:16], [0:32]}
  r1 = f32[16,32] bitcast(s1)
  g1 = f32[32,32] all-gather(r1), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  d1 = f32[4,32] dot(x, g1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = token[] after-all()
  o = token[] outfeed(d1, n), outfeed_shape=f32[4,32]
  y = f32[4,32] negate(d1)
  s2 = f32[1,16,32] slice(v), slice={[1:2], [0:16], [0:32]}
  r2 = f32[16,32] bitcast(s2)
  g2 = f32[32,32] all-gather(r2), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  ROOT d2 = f32[4,32] dot(y, g2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  EXPECT_EQ(Moved(kFence, true, false), "s1 g1 d1 o s2 g2 y d2");
}

// What an exchange needs is work itself: it stays where it is, and what reads the one before it waits.
TEST(Flight, ResultsWaitForTheNextExchange) {
  constexpr char kScatters[] = R"(HloModule m, num_partitions=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[32,32] parameter(0)
  p1 = f32[32,32] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r1 = f32[16,32] reduce-scatter(p1), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  u1 = f32[16,32] negate(r1)
  p2 = f32[32,32] dot(p1, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r2 = f32[16,32] reduce-scatter(p2), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  u2 = f32[16,32] negate(r2)
  p3 = f32[32,32] dot(p2, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[16,32], f32[16,32], f32[32,32]) tuple(u1, u2, p3)
}
)";
  EXPECT_EQ(Moved(kScatters, true, false), "p1 r1 u1 p2 r2 u2 p3");
  EXPECT_EQ(Moved(kScatters, true, true), "p1 r1 p2 r2 u1 p3 u2");
}

// What a computation begins with is exchanged with it, and read as late as that can be; what nothing here reads begins
// as soon as what it gives is there.
TEST(Flight, LoopsHaveTheWholeIteration) {
  constexpr char kCarried[] = R"(HloModule m, num_partitions=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[32,32] parameter(0)
  p = f32[32,32] parameter(1)
  v = f32[2,16,32] parameter(2)
  y = f32[32,32] negate(x)
  r = f32[16,32] reduce-scatter(p), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  u = f32[16,32] negate(r)
  z = f32[32,32] negate(y)
  s = f32[1,16,32] slice(v), slice={[0:1], [0:16], [0:32]}
  w = f32[16,32] bitcast(s)
  g = f32[32,32] all-gather(w), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, control-predecessors={y}
  ROOT t = (f32[16,32], f32[32,32], f32[32,32]) tuple(u, z, g)
}
)";
  EXPECT_EQ(Moved(kCarried, false, false), "y r u z s g");
  EXPECT_EQ(Moved(kCarried, true, false), "r y s g u z");
  EXPECT_EQ(Moved(kCarried, true, true), "r y s g z u");
}

// No exchange passes a message: the device that sends it may wait for this one.
TEST(Flight, MessagesAreFences) {
  constexpr char kFenced[] = R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[32,32] parameter(0)
  v = f32[16,32] parameter(1)
  n = token[] after-all()
  a = f32[32,32] negate(x)
  r = (f32[32,32], u32[], token[]) recv(n), channel_id=1
  d = f32[32,32] get-tuple-element(r), index=0
  g = f32[32,32] all-gather(v), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  b = f32[32,32] add(a, d)
  ROOT u = f32[32,32] add(b, g)
}
)";
  EXPECT_EQ(Moved(kFenced, true, true), "a r g b u");
}

std::string Late(const std::string& text) {
  return Ordered(text, [](const Order& given) { return SmallResultsLate(given, 1024); });
}

// A loss that is only a result is scaled behind everything, other devices' work in between included.
TEST(Flight, SmallResultsAreReadLate) {
  constexpr char kLoss[] = R"(HloModule m, num_partitions=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[32,32] parameter(0)
  l = f32[] parameter(1)
  h = f32[] constant(0.5)
  r = f32[] all-reduce(l), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  s = f32[] multiply(r, h)
  q = f32[] sqrt(s)
  y = f32[32,32] negate(x)
  g = f32[64,32] all-gather(y), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  z = f32[64,32] negate(g)
  ROOT t = (f32[], f32[64,32]) tuple(q, z)
}
)";
  EXPECT_EQ(Late(kLoss), "r y g z s q");
}

// What reads more than it, or what something needs, does not wait.
TEST(Flight, SmallResultsAreThereWhenTheyAreNeeded) {
  constexpr char kNorm[] = R"(HloModule m, num_partitions=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[32,32] parameter(0)
  l = f32[] parameter(1)
  k = f32[32] parameter(2)
  r = f32[] all-reduce(l), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  s = f32[] sqrt(r)
  w = f32[32] negate(k)
  n = f32[32,32] broadcast(s), dimensions={}
  y = f32[32,32] multiply(x, n)
  p = f32[32] all-reduce(w), replica_groups={{0,1}}, channel_id=2, use_global_device_ids=true, to_apply=add
  d = f32[32] negate(p)
  v = f32[32] all-reduce(d), replica_groups={{0,1}}, channel_id=3, use_global_device_ids=true, to_apply=add
  ROOT t = (f32[32,32], f32[32]) tuple(y, v)
}
)";
  EXPECT_EQ(Late(kNorm), "r w s n y p d v");
}

// What an exchange reads stays until its results are used, and results of work in between lie elsewhere.
TEST(Flight, OperandsStay) {
  constexpr char kText[] = R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[4,32] parameter(0)
  v = f32[16,32] parameter(1)
  w = f32[16,32] custom-call(v), custom_call_target="f"
  g = f32[32,32] all-gather(w), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  a = f32[16,32] custom-call(x), custom_call_target="f"
  b = f32[4,32] custom-call(a), custom_call_target="f"
  ROOT d = f32[4,32] dot(b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  const std::unique_ptr<Module> m = Parsed(kText);
  Schedule s;
  for (const auto& i : m->entry()->instructions()) s[m->entry()].push_back(i.get());
  const auto find = [&](const char* name) {
    for (Instruction* i : s.at(m->entry()))
      if (i->name() == name) return i;
    return static_cast<Instruction*>(nullptr);
  };
  const auto apart = [&](const BufferAssignment& b) {
    const Slice w = b.Get(find("w")), a = b.Get(find("a"));
    return w.offset + w.size <= a.offset || a.offset + a.size <= w.offset;
  };
  const Flights flights = FlightsOf(s, 1024);
  ASSERT_EQ(flights.size(), 1u);
  EXPECT_EQ(flights.begin()->second, find("d"));
  const auto at_once = BufferAssignment::Run(*m, s), beside = BufferAssignment::Run(*m, s, nullptr, flights);
  ASSERT_TRUE(at_once.ok() && beside.ok());
  EXPECT_FALSE(apart(*at_once));
  EXPECT_TRUE(apart(*beside));
  EXPECT_EQ(beside->temp_bytes() - at_once->temp_bytes(), 16 * 32 * 4);
}

// The order changes only where the arena may grow for it.
TEST(Flight, TheArenaLimitsThem) {
  const std::unique_ptr<Module> m = Parsed(kGathers);
  const auto bytes = [&](int64_t percent, int64_t most) {
    const auto plan = PlanMemory(*m, {.flight_bytes = 1024, .more_percent = percent, .most_bytes = most});
    EXPECT_TRUE(plan.ok());
    return plan->buffers.temp_bytes();
  };
  const int64_t least = bytes(0, INT64_MAX);
  EXPECT_GT(bytes(200, INT64_MAX), least);
  EXPECT_EQ(bytes(200, least), least);
  EXPECT_EQ(bytes(1, INT64_MAX), least);
}

}  // namespace
}  // namespace kiln
