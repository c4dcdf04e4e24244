// Rematerialisation: each of its three ways, the results they must not change, and the message when none is left.
#include "compiler/plan/rematerialize.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "aot/compile.h"
#include "aot/tools/runner.h"
#include "compiler/hlo/parser.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// `a` is read first and last; between them two products take as much again, each.
constexpr char kCarried[] = R"(HloModule carried
ENTRY e {
  x = f32[128,128] parameter(0)
  a = f32[128,128] $A
  p = f32[128,128] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[128,128] dot(p, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[] constant(0)
  t = f32[128] reduce(q, z), dimensions={1}, to_apply=most
  u = f32[128] reduce(a, z), dimensions={1}, to_apply=add
  ROOT s = f32[128] add(t, u)
}
most {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q)
}
add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}
)";

// A mask of a product is made early and used late.
constexpr char kMask[] = R"(HloModule mask
ENTRY e {
  x = f32[128,128] parameter(0)
  c = f32[128] parameter(1)
  d = f32[128,128] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[128,128] broadcast(c), dimensions={0}
  m = pred[128,128] compare(d, b), direction=GT
  less = pred[128,128] sort(m), dimensions={1}, to_apply=before
  z = f32[128,128] broadcast(c), dimensions={1}
  w = f32[128,128] select(less, d, z)
  p = f32[128,128] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[128,128] dot(p, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[128,128] dot(q, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = f32[128,128] select(less, r, z)
}
before {
  p = pred[] parameter(0)
  q = pred[] parameter(1)
  np = pred[] not(p)
  ROOT s = pred[] and(np, q)
}
)";

// The update of `a` needs a copy, which runs at the peak, right behind the conditional that `b` is an element of.
constexpr char kElements[] = R"(HloModule elements
ENTRY e {
  x = f32[128,128] parameter(0)
  c = pred[] parameter(1)
  k = (f32[128,128], f32[128,128], f32[64,128]) conditional(c, x, x), true_computation=squares, false_computation=sines
  a = f32[128,128] get-tuple-element(k), index=0
  b = f32[128,128] get-tuple-element(k), index=1
  rows = f32[64,128] get-tuple-element(k), index=2
  i = s32[] constant(3)
  z = s32[] constant(0)
  u = f32[128,128] dynamic-update-slice(a, rows, i, z)
  zero = f32[] constant(0)
  s = f32[128] reduce(u, zero), dimensions={0}, to_apply=add
  w = f32[128] dot(a, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  v = f32[128] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[128] add(v, w)
}
squares {
  x = f32[128,128] parameter(0)
  p = f32[128,128] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[128,128] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  h = f32[64,128] slice(q), slice={[0:64], [0:128]}
  ROOT t = (f32[128,128], f32[128,128], f32[64,128]) tuple(p, q, h)
}
sines {
  x = f32[128,128] parameter(0)
  p = f32[128,128] sine(x)
  q = f32[128,128] cosine(x)
  h = f32[64,128] slice(q), slice={[64:128], [0:128]}
  ROOT t = (f32[128,128], f32[128,128], f32[64,128]) tuple(p, q, h)
}
add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}
)";

// Two rounds of this loop become one; the second waits for what it reads of the first, not for all of it.
constexpr char kRounds[] = R"(HloModule rounds
ENTRY e {
  x = s8[64,256] parameter(0)
  y = bf16[64,256] parameter(1)
  z = s32[] constant(0)
  t = (s32[], s8[64,256], bf16[64,256]) tuple(z, x, y)
  w = (s32[], s8[64,256], bf16[64,256]) while(t), condition=more, body=round
  ROOT r = bf16[64,256] get-tuple-element(w), index=2
}
more {
  s = (s32[], s8[64,256], bf16[64,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(64)
  ROOT l = pred[] compare(i, n), direction=LT
}
round {
  s = (s32[], s8[64,256], bf16[64,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = s8[64,256] get-tuple-element(s), index=1
  last = s8[24,256] slice(x), slice={[40:64], [0:256]}
  first = s8[40,256] slice(x), slice={[0:40], [0:256]}
  turned = s8[64,256] concatenate(last, first), dimensions={0}
  y = bf16[64,256] convert(turned)
  z = s32[] constant(0)
  part = bf16[53,241] dynamic-slice(y, i, z), dynamic_slice_sizes={53,241}
  moved = bf16[64,256] dynamic-update-slice(y, part, z, z)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], s8[64,256], bf16[64,256]) tuple(next, turned, moved)
}
)";

std::string Carried(const std::string& a) {
  std::string text = kCarried;
  return text.replace(text.find("$A"), 2, a);
}

// What `a` is made of is gone when it is read again, and dear to make.
std::string Product() {
  std::string text = Carried("dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}");
  text.insert(text.find("  a = "),
              "  y = f32[128,128] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  return text;
}

struct Outcome {
  CompiledModel model;
  std::vector<Literal> results;
};

absl::StatusOr<Outcome> RunWithin(const std::string& text, int64_t limit, int64_t slow) {
  ASSIGN_OR_RETURN(auto m, ParseHlo(text, "m.hlo"));
  CompileOptions o;
  o.cpu.levels = {"native"};
  o.pipeline.verify_each = true;
  o.model.max_arena_bytes = limit;
  o.model.slow_arena_bytes = slow;
  const std::vector<Literal> arguments = SeededArguments(*m, 3);
  ASSIGN_OR_RETURN(RunResult r, RunModule(std::move(m), arguments, o, {}));
  return Outcome{std::move(r.model), std::move(r.results)};
}

// Compiles without a limit, then within `limit`; the results must be the same bits.
void ExpectFits(const std::string& text, int64_t limit, int64_t slow, RematerializeStep::Kind kind) {
  auto free = RunWithin(text, 0, 0);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_GT(free->model.report.temp_bytes, limit);
  EXPECT_TRUE(free->model.report.rematerialized.empty());
  auto tight = RunWithin(text, limit, slow);
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_LE(tight->model.report.temp_bytes, limit);
  EXPECT_LE(tight->model.report.slow_bytes, slow);
  bool fired = false;
  for (const RematerializeStep& s : tight->model.report.rematerialized) fired = fired || s.kind == kind;
  EXPECT_TRUE(fired);
  ASSERT_EQ(free->results.size(), tight->results.size());
  for (size_t k = 0; k < free->results.size(); ++k) EXPECT_EQ(free->results[k], tight->results[k]);
}

constexpr int64_t kArray = 128 * 128 * 4;

TEST(Rematerialize, ComputesAgain) {
  ExpectFits(Carried("exponential(x)"), 2 * kArray, 0, RematerializeStep::kRecompute);
}

TEST(Rematerialize, Packs) { ExpectFits(kMask, 2 * kArray + kArray / 16, 0, RematerializeStep::kCompress); }

TEST(Rematerialize, SendsToTheSlowArena) { ExpectFits(Product(), 2 * kArray, kArray, RematerializeStep::kOffload); }

TEST(Rematerialize, SendsAnElementOfWhatRunsBeforeThePeak) {
  ExpectFits(kElements, 3 * kArray, kArray, RematerializeStep::kOffload);
}

TEST(Rematerialize, RoundsThatBecameOneHoldWhatOneHolds) {
  const int64_t values = 64 * 256 * (1 + 2);
  auto free = RunWithin(kRounds, 0, 0);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_LE(free->model.report.temp_bytes, values);
  auto tight = RunWithin(kRounds, values * 3 / 4, values);
  EXPECT_EQ(tight.status().code(), absl::StatusCode::kResourceExhausted) << tight.status();
}

TEST(Rematerialize, LeavesAloneWhatFits) {
  auto got = RunWithin(Carried("exponential(x)"), 100 * kArray, 0);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->model.report.rematerialized.empty());
}

TEST(Rematerialize, NamesTheOwnersOfThePeak) {
  auto got = RunWithin(Carried("exponential(x)"), kArray, 0);
  ASSERT_FALSE(got.ok());
  const std::string message(got.status().message());
  EXPECT_TRUE(absl::StrContains(message, "the config allows 65536")) << message;
  EXPECT_TRUE(absl::StrContains(message, "f32[128,128]  line")) << message;
}

TEST(Rematerialize, TheHeaderHasASlowArena) {
  auto m = ParseHlo(Product(), "m.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  CompileOptions o;
  o.cpu.levels = {"v2"};
  o.model.max_arena_bytes = 2 * kArray;
  o.model.slow_arena_bytes = kArray;
  auto model = Compile(std::move(*m), o);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_GT(model->report.slow_bytes, 0);
  EXPECT_TRUE(absl::StrContains(
      model->code.c_header, absl::StrCat("#define MODEL_SLOW_ARENA_BYTES ((size_t)", model->report.slow_bytes, ")")));
  EXPECT_TRUE(absl::StrContains(model->code.header, "context.slow_arena()"));
}

}  // namespace
}  // namespace kiln
