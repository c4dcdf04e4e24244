// Values that a program places in the host's memory: on a GPU they take no place in its arena, on a CPU there is
// nothing to place.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "aot/planning.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kRows = 64, kRow = 1024 * sizeof(float), kStack = kRows * kRow;

// A loop that stacks 64 rows, and one that reads them back.
constexpr char kScan[] = R"(
HloModule m
storing {
  s = (s32[], f32[64,1024], f32[1024]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  end = s32[] constant(64)
  ROOT less = pred[] compare(n, end), direction=LT
}
store {
  s = (s32[], f32[64,1024], f32[1024]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  all = f32[64,1024] get-tuple-element(s), index=1
  x = f32[1024] get-tuple-element(s), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(n, one)
  y = f32[1024] cosine(x)
  h = f32[1024] custom-call(y), custom_call_target="MoveToHost"
  row = f32[1,1024] reshape(h)
  d = f32[64,1024] dynamic-update-slice(all, row, n, zero)
  ROOT t = (s32[], f32[64,1024], f32[1024]) tuple(next, d, y)
}
reading {
  s = (s32[], f32[64,1024], f32[1024]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  end = s32[] constant(64)
  ROOT less = pred[] compare(n, end), direction=LT
}
read {
  s = (s32[], f32[64,1024], f32[1024]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  all = f32[64,1024] get-tuple-element(s), index=1
  sum = f32[1024] get-tuple-element(s), index=2
  one = s32[] constant(1)
  most = s32[] constant(63)
  zero = s32[] constant(0)
  next = s32[] add(n, one)
  last = s32[] subtract(most, n)
  row = f32[1,1024] dynamic-slice(all, last, zero), dynamic_slice_sizes={1,1024}
  h = f32[1024] reshape(row)
  y = f32[1024] custom-call(h), custom_call_target="MoveToDevice"
  sine = f32[1024] sine(y)
  more = f32[1024] add(sum, sine)
  ROOT t = (s32[], f32[64,1024], f32[1024]) tuple(next, all, more)
}
ENTRY e {
  x = f32[1024] parameter(0)
  none = f32[] constant(0)
  zero = s32[] constant(0)
  empty = f32[64,1024] broadcast(none), dimensions={}
  begin = (s32[], f32[64,1024], f32[1024]) tuple(zero, empty, x)
  first = (s32[], f32[64,1024], f32[1024]) while(begin), condition=storing, body=store
  all = f32[64,1024] get-tuple-element(first), index=1
  y = f32[1024] get-tuple-element(first), index=2
  again = (s32[], f32[64,1024], f32[1024]) tuple(zero, all, y)
  second = (s32[], f32[64,1024], f32[1024]) while(again), condition=reading, body=read
  ROOT sum = f32[1024] get-tuple-element(second), index=2
}
)";

PlannedProgram Planned(const std::string& text, ProgramTarget target) {
  auto m = ParseHlo(text, "t.hlo");
  KILN_CHECK(m.ok());
  CompileOptions o;
  o.pipeline.verify_each = true;
  auto planned = PlanProgram(*std::move(m), "m", o, target, [](const std::string&) {});
  EXPECT_TRUE(planned.ok()) << planned.status();
  return *std::move(planned);
}

TEST(HostMemory, WhatIsStackedThereTakesNoneOfTheArena) {
  const PlannedProgram on_host = Planned(kScan, ProgramTarget::kGpu);
  EXPECT_EQ(on_host.plan.buffers.slow_bytes(), kStack);
  EXPECT_LT(on_host.plan.buffers.temp_bytes(), 8 * kRow);
  // Nothing is written before the loop stores it, and nothing but the two transfers touches it.
  const std::string steps = ToText(on_host.thunks);
  EXPECT_THAT(steps, HasSubstr("slow"));
  EXPECT_THAT(steps, Not(HasSubstr("fill")));
  EXPECT_THAT(ToText(*on_host.module), Not(HasSubstr("MoveTo")));

  const std::string plain =
      absl::StrReplaceAll(kScan, {{"MoveToHost", "PinToDevice"}, {"MoveToDevice", "PinToDevice"}});
  const PlannedProgram on_device = Planned(plain, ProgramTarget::kGpu);
  EXPECT_EQ(on_device.plan.buffers.slow_bytes(), 0);
  EXPECT_GE(on_device.plan.buffers.temp_bytes(), kStack);
}

TEST(HostMemory, ACpuHasNoOther) {
  const PlannedProgram p = Planned(kScan, ProgramTarget::kCpu);
  EXPECT_EQ(p.plan.buffers.slow_bytes(), 0);
  EXPECT_GE(p.plan.buffers.temp_bytes(), kStack);
}

// The results of a caller that has them on the host are no place for what the device works with, nor in an arena.
TEST(HostMemory, ArgumentsAndResultsAreTheCallers) {
  const std::string text = R"(
HloModule m, entry_computation_layout={(f32[1024]{0:S(5)})->(f32[1024]{0:S(5)}, f32[])}
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[1024] parameter(0)
  mx = f32[1024] custom-call(x), custom_call_target="MoveToDevice"
  none = f32[] constant(0)
  total = f32[] reduce(mx, none), dimensions={0}, to_apply=sum
  totals = f32[1024] broadcast(total), dimensions={}
  y = f32[1024] divide(mx, totals)
  hy = f32[1024] custom-call(y), custom_call_target="MoveToHost"
  ROOT t = (f32[1024], f32[]) tuple(hy, total)
}
)";
  const PlannedProgram p = Planned(text, ProgramTarget::kGpu);
  EXPECT_EQ(p.plan.buffers.slow_bytes(), 0);
  EXPECT_GE(p.plan.buffers.temp_bytes(), kRow);
  EXPECT_THAT(ToText(p.thunks), HasSubstr("copy "));
}

// An operation that reads such a value where it lies gets a copy, and the user is told.
TEST(HostMemory, OperationsWorkOnCopies) {
  const std::string text = R"(
HloModule m
ENTRY e {
  x = f32[1024] parameter(0)
  hx = f32[1024] custom-call(x), custom_call_target="MoveToHost"
  ROOT y = f32[1024] negate(hx)
}
)";
  const PlannedProgram p = Planned(text, ProgramTarget::kGpu);
  EXPECT_EQ(p.plan.buffers.slow_bytes(), kRow);
  ASSERT_EQ(p.notes.size(), 1u);
  EXPECT_THAT(p.notes[0], HasSubstr("%y (line 6) reads %"));
}

}  // namespace
}  // namespace kiln
