// Memory planning: no overlap among live slices, never below the bound, in-place storage that stays correct.
#include <random>

#include "aot/compile.h"
#include "aot/tools/runner.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/passes/memory/prepare_for_planning.h"
#include "compiler/pipeline/registry.h"
#include "compiler/plan/buffer_assignment.h"
#include "compiler/plan/copy_insertion.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// A random graph of elementwise operations, slices and updates over f32[64].
std::string RandomGraph(uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::string text =
      "HloModule r\nENTRY e {\n  v0 = f32[64] parameter(0)\n  v1 = f32[64] parameter(1)\n  i = s32[] constant(3)\n";
  const int n = 6 + static_cast<int>(rng() % 24);
  for (int k = 2; k < n; ++k) {
    auto pick = [&] { return "v" + std::to_string(rng() % k); };
    const std::string v = "  v" + std::to_string(k) + " = f32[64] ";
    switch (rng() % 6) {
      case 0:
        text += v + "add(" + pick() + ", " + pick() + ")\n";
        break;
      case 1:
        text += v + "sine(" + pick() + ")\n";
        break;
      case 2:
        text += v + "reverse(" + pick() + "), dimensions={0}\n";
        break;
      case 3:
        text += v + "subtract(" + pick() + ", " + pick() + ")\n";
        break;
      case 4: {
        const std::string u = "u" + std::to_string(k);
        text += "  " + u + " = f32[8] slice(" + pick() + "), slice={[8:16]}\n" + v + "dynamic-update-slice(" + pick() +
                ", " + u + ", i)\n";
        break;
      }
      default:
        text += v + "maximum(" + pick() + ", " + pick() + ")\n";
    }
  }
  return text + "  ROOT out = (f32[64], f32[64]) tuple(v" + std::to_string(n - 1) + ", v" + std::to_string(n / 2) +
         ")\n}\n";
}

void ExpectCompiledEqualsEvaluated(const std::string& text, uint64_t seed, double tolerance = 1e-5) {
  auto m = ParseHlo(text, "t.hlo");
  ASSERT_TRUE(m.ok()) << m.status() << text;
  const std::vector<Literal> args = SeededArguments(**m, seed);
  auto want = Evaluate(**m, args);
  ASSERT_TRUE(want.ok()) << want.status();
  CompileOptions o;
  o.cpu.levels = {"native"};
  o.pipeline.verify_each = true;
  auto got = RunModule((*m)->Clone(), args, o, {});
  ASSERT_TRUE(got.ok()) << got.status() << text;
  const std::vector<Literal> leaves = want->shape().IsTuple() ? want->elements() : std::vector<Literal>{*want};
  ASSERT_EQ(leaves.size(), got->results.size());
  for (size_t r = 0; r < leaves.size(); ++r)
    for (int64_t k = 0; k < leaves[r].size(); ++k) {
      const Element g = got->results[r].Get(k), w = leaves[r].Get(k);
      ASSERT_EQ(g.i, w.i) << text;
      if (!(std::isnan(g.re) && std::isnan(w.re))) {
        ASSERT_NEAR(g.re, w.re, tolerance * (1 + std::fabs(w.re))) << "result " << r << " element " << k << "\n"
                                                                   << text;
      }
    }
}

TEST(BufferAssignment, RandomGraphsHoldNoOverlapAndGiveTheSameResults) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::string text = RandomGraph(seed);
    auto m = ParseHlo(text, "r.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    ASSERT_TRUE(CpuPipeline().Run(**m, {}).ok());
    ASSERT_TRUE(InsertCopies(**m).ok());
    const Schedule s = ScheduleModule(**m);
    auto b = BufferAssignment::Run(**m, s);
    ASSERT_TRUE(b.ok()) << b.status();
    for (const Allocation& x : b->temps())
      for (const Allocation& y : b->temps()) {
        if (&x == &y || x.begin > y.end || y.begin > x.end) continue;
        if (x.slice.kind != y.slice.kind || x.slice.index != y.slice.index) continue;
        EXPECT_TRUE(x.slice.offset + x.slice.size <= y.slice.offset || y.slice.offset + y.slice.size <= x.slice.offset)
            << x.owner << " and " << y.owner << "\n"
            << text;
      }
    ExpectCompiledEqualsEvaluated(text, seed);
  }
}

// Each of them is within the limit of one array.
TEST(BufferAssignment, ArraysBeyondAllAddressesAreAnError) {
  const std::string array = "c128[72057594037927936]";
  std::string text = "HloModule m\nENTRY e {\n", parts;
  for (int k = 0; k < 40; ++k) {
    text += absl::StrCat("  p", k, " = ", array, " parameter(", k, ")\n");
    text += absl::StrCat("  r", k, " = ", array, " reverse(p", k, "), dimensions={0}\n");
    parts += absl::StrCat(k ? ", r" : "r", k);
  }
  std::string tuple = array;
  for (int k = 1; k < 40; ++k) tuple += ", " + array;
  auto m = ParseHlo(absl::StrCat(text, "  ROOT t = (", tuple, ") tuple(", parts, ")\n}\n"), "t.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  const auto got = Compile(std::move(*m), CompileOptions());
  EXPECT_EQ(got.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(got.status().message(), testing::HasSubstr("more than 2^62 bytes"));
}

TEST(BufferAssignment, PoisonedFreedSlicesChangeNothing) {
  for (uint64_t seed = 100; seed < 115; ++seed) {
    const std::string text = RandomGraph(seed);
    CompileOptions plain, poison;
    plain.cpu.levels = poison.cpu.levels = {"native"};
    poison.debug.poison_freed = true;
    auto m = ParseHlo(text, "r.hlo");
    ASSERT_TRUE(m.ok());
    const std::vector<Literal> args = SeededArguments(**m, seed);
    auto a = RunModule((*m)->Clone(), args, plain, {});
    auto b = RunModule((*m)->Clone(), args, poison, {});
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    for (size_t r = 0; r < a->results.size(); ++r) EXPECT_EQ(a->results[r], b->results[r]) << text;
  }
}

// The first sum waits for nothing but its own operands: while it is made, the second result's memory is free.
TEST(BufferAssignment, ValuesBorrowResultsThatAreNotWrittenYet) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  a = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[64,64] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[64,64] dot(c, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[64,64], f32[64,64]) tuple(c, d)
}
)";
  auto m = ParseHlo(text, "m.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  ASSERT_TRUE(CpuPipeline().Run(**m, {}).ok());
  ASSERT_TRUE(InsertCopies(**m).ok());
  auto b = BufferAssignment::Run(**m, ScheduleModule(**m));
  ASSERT_TRUE(b.ok()) << b.status();
  // `a` dies at `c`, in d's memory; `b` is read by `d` and has only the arena.
  EXPECT_EQ(b->peak_bytes(), 2 * 64 * 64 * 4);
  EXPECT_EQ(b->temp_bytes(), 64 * 64 * 4);
  ExpectCompiledEqualsEvaluated(text, 1);
}

std::string Swap(int trips) {
  return R"(HloModule swap
cond {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant()" +
         std::to_string(trips) + R"()
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, b, a)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[8], f32[8]) tuple(z, x, y)
  w = (s32[], f32[8], f32[8]) while(t), condition=cond, body=body
  a = f32[8] get-tuple-element(w), index=1
  b = f32[8] get-tuple-element(w), index=2
  ROOT r = (f32[8], f32[8]) tuple(a, b)
}
)";
}

TEST(CopyInsertion, SwapIsRightForOddAndEvenTripCounts) {
  for (int trips : {0, 1, 2, 3, 6, 7}) ExpectCompiledEqualsEvaluated(Swap(trips), 3);
}

TEST(CopyInsertion, ACounterNeedsNoCopyInTheLoop) {
  auto m = ParseHlo(R"(HloModule counter
cond {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] add(x, x)
  ROOT t = (s32[], f32[8]) tuple(j, y)
}
ENTRY e {
  x = f32[8] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[8]) tuple(z, x)
  w = (s32[], f32[8]) while(t), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
)",
                    "c.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  ASSERT_TRUE(CpuPipeline().Run(**m, {}).ok());
  ASSERT_TRUE(InsertCopies(**m).ok());
  for (const auto& c : (*m)->computations())
    for (const auto& i : c->instructions())
      if (c.get() != (*m)->entry()) {
        EXPECT_FALSE(i->Is(Opcode::Copy)) << ToText(**m);
      }
}

// What reads the counter comes before the one that takes its place, though a tuple beside them holds both.
TEST(CopyInsertion, AnUnrolledLoopReadsItsCounterInTime) {
  auto m = ParseHlo(R"(HloModule unrolled
cond {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  j = s32[] negate(i)
  f = f32[1] constant({1})
  y = f32[8] dynamic-update-slice(x, f, i)
  t = (s32[], f32[8]) tuple(j, y)
  t0 = s32[] get-tuple-element(t), index=0
  t1 = f32[8] get-tuple-element(t), index=1
  k = s32[] negate(t0)
  z = f32[8] dynamic-update-slice(t1, f, t0)
  ROOT r = (s32[], f32[8]) tuple(k, z)
}
ENTRY e {
  x = f32[8] parameter(0)
  c = s32[] constant(0)
  t = (s32[], f32[8]) tuple(c, x)
  w = (s32[], f32[8]) while(t), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
)",
                    "u.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  ASSERT_TRUE(PrepareForPlanning(**m).ok());
  int found = 0;
  for (const auto& c : (*m)->computations())
    for (const auto& i : c->instructions()) {
      if (i->name() != "k") continue;
      ++found;
      const std::vector<Instruction*>& before = i->control_predecessors();
      EXPECT_TRUE(std::any_of(before.begin(), before.end(), [](const Instruction* b) { return b->name() == "y"; }))
          << ToText(**m);
    }
  EXPECT_EQ(found, 1);
}

TEST(CopyInsertion, AParameterThatWasNotDonatedSurvivesAnUpdate) {
  ExpectCompiledEqualsEvaluated(R"(HloModule u
ENTRY e {
  x = f32[16] parameter(0)
  u = f32[4] parameter(1)
  i = s32[] constant(5)
  d = f32[16] dynamic-update-slice(x, u, i)
  ROOT r = (f32[16], f32[16]) tuple(d, x)
}
)",
                                1);
}

TEST(CopyInsertion, AnUpdateThatReadsWhatItOverwrites) {
  ExpectCompiledEqualsEvaluated(R"(HloModule stencil, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[16] parameter(0)
  a = f32[14] slice(x), slice={[0:14]}
  b = f32[14] slice(x), slice={[2:16]}
  s = f32[14] add(a, b)
  i = s32[] constant(1)
  ROOT d = f32[16] dynamic-update-slice(x, s, i)
}
)",
                                1);
}

// The value before the last was made in the state's own storage: a kernel that reads it out of order may not write
// there.
TEST(CopyInsertion, AReversedUpdateOfLoopState) {
  ExpectCompiledEqualsEvaluated(R"(HloModule reversed
cond {
  s = (s32[], f32[7]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[7]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[7] get-tuple-element(s), index=1
  f = f32[] convert(i)
  u = f32[2] broadcast(f), dimensions={}
  d = f32[7] dynamic-update-slice(x, u, i)
  r = f32[7] reverse(d), dimensions={0}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[7]) tuple(j, r)
}
ENTRY e {
  x = f32[7] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[7]) tuple(z, x)
  w = (s32[], f32[7]) while(t), condition=cond, body=body
  ROOT g = f32[7] get-tuple-element(w), index=1
}
)",
                                3);
}

TEST(CopyInsertion, ASwapThatUpdatesOneSide) {
  for (const char* trips : {"1", "2", "3"})
    ExpectCompiledEqualsEvaluated(std::string(R"(HloModule swap
cond {
  s = (s32[], f32[6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant()") + trips + R"()
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[6] get-tuple-element(s), index=1
  b = f32[6] get-tuple-element(s), index=2
  f = f32[] convert(i)
  u = f32[2] broadcast(f), dimensions={}
  d = f32[6] dynamic-update-slice(b, u, i)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[6], f32[6]) tuple(j, d, a)
}
ENTRY e {
  x = f32[6] parameter(0)
  y = f32[6] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[6], f32[6]) tuple(z, x, y)
  w = (s32[], f32[6], f32[6]) while(t), condition=cond, body=body
  a = f32[6] get-tuple-element(w), index=1
  b = f32[6] get-tuple-element(w), index=2
  ROOT r = (f32[6], f32[6]) tuple(a, b)
}
)",
                                  3);
}

TEST(CopyInsertion, OneArrayUpdatedForTwoResults) {
  ExpectCompiledEqualsEvaluated(R"(HloModule twice
both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  p = f32[] parameter(2)
  q = f32[] parameter(3)
  s = f32[] add(a, p)
  m = f32[] multiply(b, q)
  ROOT t = (f32[], f32[]) tuple(s, m)
}
ENTRY e {
  x = f32[6,5] parameter(0)
  u = f32[2,5] parameter(1)
  i = s32[2,1] constant({{1},{4}})
  ROOT s = (f32[6,5], f32[6,5]) scatter(x, x, i, u, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=both
}
)",
                                3);
}

// The state is read for the last time before the array is made that an update then makes the next state of.
std::string UpdatedProduct(const std::string& other) {
  return R"(HloModule products
cond {
  s = (s32[], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,8] get-tuple-element(s), index=1
  y = f32[8,8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  zero = s32[] constant(0)
  row = f32[1,8] slice(y), slice={[2:3], [0:8]}
  a = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  c = f32[8,8] dynamic-update-slice(b, row, i, zero)
  d = f32[8,8] dynamic-update-slice(c, row, j, zero)
  other = f32[8,8] )" +
         other + R"(
  ROOT t = (s32[], f32[8,8], f32[8,8]) tuple(j, d, other)
}
ENTRY e {
  x = f32[8,8] parameter(0)
  y = f32[8,8] parameter(1)
  h = f32[] constant(0.125)
  hs = f32[8,8] broadcast(h), dimensions={}
  v = f32[8,8] multiply(x, hs)
  z = s32[] constant(0)
  t = (s32[], f32[8,8], f32[8,8]) tuple(z, v, y)
  w = (s32[], f32[8,8], f32[8,8]) while(t), condition=cond, body=body
  a = f32[8,8] get-tuple-element(w), index=1
  b = f32[8,8] get-tuple-element(w), index=2
  ROOT r = (f32[8,8], f32[8,8]) tuple(a, b)
}
)";
}

TEST(CopyInsertion, WhatIsUpdatedIsMadeWhereTheStateWas) {
  for (const bool needed : {false, true}) {
    // Where the old state is read behind the product, the new one may not be made in its place.
    const std::string text =
        UpdatedProduct(needed ? "dot(x, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}" : "add(y, y)");
    auto m = ParseHlo(text, "m.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    ASSERT_TRUE(CpuPipeline().Run(**m, {}).ok());
    ASSERT_TRUE(InsertCopies(**m).ok());
    int copies = 0;
    for (const auto& c : (*m)->computations())
      for (const auto& i : c->instructions()) copies += c.get() != (*m)->entry() && i->Is(Opcode::Copy);
    EXPECT_EQ(copies > 0, needed) << ToText(**m);
    ExpectCompiledEqualsEvaluated(text, 5);
  }
}

// One of two fusions that share a computation needs the old elements beside the update.
TEST(CopyInsertion, AFusionGetsAnOperandOfItsOwnInAComputationOfItsOwn) {
  auto m = ParseHlo(R"(HloModule shared
f {
  p = s32[4] parameter(0)
  n = s32[4] negate(p)
  i = s32[] constant(0)
  u = s32[4] dynamic-update-slice(p, n, i)
  ROOT t = (s32[4], s32[4]) tuple(n, u)
}
ENTRY e {
  x = s32[4] parameter(0)
  y = s32[4] abs(x)
  z = s32[4] not(x)
  a = (s32[4], s32[4]) fusion(y), kind=kLoop, calls=f
  b = (s32[4], s32[4]) fusion(z), kind=kLoop, calls=f
  ROOT r = ((s32[4], s32[4]), (s32[4], s32[4])) tuple(a, b)
}
)",
                    "shared.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  ASSERT_TRUE(InsertCopies(**m).ok());
  EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m) << ToText(**m);
  for (const auto& i : (*m)->entry()->instructions())
    if (i->Is(Opcode::Fusion)) {
      EXPECT_EQ((*i->attrs().calls)->parameters().size(), 2) << ToText(**m);
      EXPECT_EQ(i->operand_count(), 2) << ToText(**m);
    }
}

// Arrays without elements still have an address.
TEST(Compile, AConstantWithoutElements) {
  ExpectCompiledEqualsEvaluated(R"(HloModule empty
ENTRY e {
  x = f32[3] parameter(0)
  c = f32[0] constant({})
  ROOT t = (f32[3], f32[0]) tuple(x, c)
}
)",
                                3);
}

TEST(Compile, TheSameInputGivesTheSameBytes) {
  CompileOptions o;
  auto a = Compile(std::move(*ParseHlo(Swap(3), "a.hlo")), o);
  auto b = Compile(std::move(*ParseHlo(Swap(3), "a.hlo")), o);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->code.archive, b->code.archive);
  EXPECT_EQ(a->code.header, b->code.header);
  EXPECT_EQ(a->code.manifest, b->code.manifest);
}

// A scheduled module takes the least memory, or the order of its text where the config says so.
TEST(Compile, KeepsAScheduleThatTheConfigAsksFor) {
  const char* text = R"(HloModule m, is_scheduled=true
ENTRY e {
  x = f32[4] parameter(0)
  c = f32[1024] custom-call(x), custom_call_target="f"
  a = f32[1024] custom-call(x), custom_call_target="g"
  d = f32[4] custom-call(c), custom_call_target="f"
  b = f32[4] custom-call(a), custom_call_target="f"
  n = f32[4] negate(b)
  ROOT t = (f32[4], f32[4]) tuple(d, n)
}
)";
  for (const auto& [config, arena] : {std::pair{"", 4096}, {"keep_schedule: true", 8192}}) {
    const auto o = ParseConfig(absl::StrCat(config, " cpu_levels: \"v3\""), "c");
    ASSERT_TRUE(o.ok()) << o.status();
    const auto compiled = Compile(std::move(*ParseHlo(text, "m.hlo")), *o);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_EQ(compiled->report.temp_bytes, arena) << config;
  }
}

TEST(Config, NarrowFloatsKeepDigitsUnlessToldNotTo) {
  for (const auto& [text, keeps] :
       {std::pair{"", true},
        {"numerics { round_every_operation: true }", false},
        {"numerics { algebra: EXACT }", false},
        {"xla_flags: \"--xla_allow_excess_precision=false\"", false},
        {"xla_flags: \"--xla_allow_excess_precision=true\"", true},
        {"numerics { round_every_operation: true } xla_flags: \"--xla_allow_excess_precision=true\"", false}}) {
    const auto o = ParseConfig(text, "c");
    ASSERT_TRUE(o.ok()) << text << ": " << o.status();
    EXPECT_EQ(KeepsExcess(*o), keeps) << text;
  }
}

TEST(Config, ShortSumsOfF16AreF16UnlessToldNotTo) {
  for (const auto& [text, in_f16] : {std::pair{"", true},
                                     {"numerics { sum_f16_in_f32: true }", false},
                                     {"numerics { round_every_operation: true }", false},
                                     {"numerics { algebra: EXACT }", false}}) {
    const auto o = ParseConfig(text, "c");
    ASSERT_TRUE(o.ok()) << text << ": " << o.status();
    auto level = FindCpuLevel("v4fp16");
    ASSERT_TRUE(level.ok());
    Restrict(&*level, *o);
    EXPECT_EQ(level->fp16, in_f16) << text;
  }
}

TEST(Config, WinogradRunsWhereTheConfigAllowsItsRounding) {
  const auto changes = [](const char* text) {
    const auto o = ParseConfig(text, "c");
    EXPECT_TRUE(o.ok()) << text << ": " << o.status();
    return o.ok() ? PassChanges(*o) : std::vector<std::string>{};
  };
  EXPECT_THAT(changes("numerics { algebra: FAST }"), testing::IsEmpty());
  EXPECT_THAT(changes("numerics { winograd: true }"),
              testing::ElementsAre("enables winograd-convolution after convolution-to-dot (cpu)"));
  for (const auto& [text, error] :
       {std::pair{"numerics { winograd: true algebra: EXACT }", "which algebra: EXACT forbids"},
        {"gpu { targets: \"sm_90\" } numerics { winograd: true }", "the config asks for none"}}) {
    const auto o = ParseConfig(text, "c");
    ASSERT_FALSE(o.ok()) << text;
    EXPECT_THAT(o.status().message(), testing::HasSubstr(error));
  }
}

TEST(Config, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(ParseConfig("cpu_levels: \"v3\"", "c").ok());
  for (const char* text :
       {"colour: 3", "cpu_levels: \"v9\"", "xla_flags: \"--xla_nonsense=1\"",
        "cpu_levels: \"v3\" xla_flags: \"--xla_cpu_max_isa=AVX2\"", "debug { disable_passes: \"nope\" }",
        "max_arena_bytes: -1", "keep_schedule: true max_arena_bytes: 4096", "limits { elements: -1 }",
        "limits { call_depth: 100000 }"})
    EXPECT_FALSE(ParseConfig(text, "c").ok()) << text;
  const auto limited = ParseConfig("limits { elements: 1000 devices: 2 }", "c");
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_EQ(limited->limits.elements, 1000);
  EXPECT_EQ(limited->limits.devices, 2);
  EXPECT_EQ(limited->limits.instructions, Limits().instructions);
}

}  // namespace
}  // namespace kiln
