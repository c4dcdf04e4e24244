// The plan checker finds every planted fault, and nothing in plans as they are.
#include "aot/planning.h"
#include "compiler/hlo/parser.h"
#include "compiler/pipeline/registry.h"
#include "compiler/thunk/check/plan_check.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// A loop, a choice, an update in place of a donated argument, results that are copies, and values that die apart.
constexpr char kProgram[] = R"(HloModule plan, input_output_alias={ {0}: (0, {}, may-alias) }

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

less {
  t = (s32[], f32[64,64], f32[64,64]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  n = s32[] constant(7)
  ROOT r = pred[] compare(k, n), direction=LT
}

step {
  t = (s32[], f32[64,64], f32[64,64]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  x = f32[64,64] get-tuple-element(t), index=1
  y = f32[64,64] get-tuple-element(t), index=2
  one = s32[] constant(1)
  next = s32[] add(k, one)
  product = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], f32[64,64], f32[64,64]) tuple(next, y, product)
}

left {
  p = f32[64,64] parameter(0)
  ROOT t = f32[64,64] transpose(p), dimensions={1,0}
}

right {
  p = f32[64,64] parameter(0)
  d = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[64,64] dot(d, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY e {
  given = f32[4096] parameter(0)
  x = f32[64,64] parameter(1)
  which = pred[] parameter(2)
  at = s32[] parameter(3)
  zero = f32[] constant(0)
  start = s32[] constant(0)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[64,64] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  state = (s32[], f32[64,64], f32[64,64]) tuple(start, y, z)
  loop = (s32[], f32[64,64], f32[64,64]) while(state), condition=less, body=step
  u = f32[64,64] get-tuple-element(loop), index=1
  v = f32[64,64] get-tuple-element(loop), index=2
  chosen = f32[64,64] conditional(which, u, v), true_computation=left, false_computation=right
  sums = f32[64] reduce(chosen, zero), dimensions={1}, to_apply=add
  back = f32[64] reverse(sums), dimensions={0}
  updated = f32[4096] dynamic-update-slice(given, back, at)
  w = f32[64,64] dot(chosen, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = (f32[4096], f32[64,64], f32[64,64], f32[64]) tuple(updated, x, w, sums)
})";

class PlanCheck : public testing::TestWithParam<ProgramTarget> {
 protected:
  void SetUp() override {
    auto m = ParseHlo(kProgram, "plan.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    auto planned = PlanProgram(std::move(*m), "plan", {}, GetParam(), [](const std::string&) {});
    ASSERT_TRUE(planned.ok()) << planned.status();
    program_ = std::move(*planned);
    ASSERT_TRUE(Check(program_.thunks).ok()) << Check(program_.thunks);
  }

  absl::Status Check(const ThunkSequence& thunks) { return CheckPlan(*program_.module, program_.plan.buffers, thunks); }

  // Calls fn with every sequence of a copy of the program, which it may edit; the copy is fresh each time.
  using Edit = std::function<std::string(ThunkSequence*)>;  // the fault's name; empty: there is none here
  int Plant(const Edit& edit) {
    int planted = 0;
    for (size_t k = 0; k < Sequences(&program_.thunks).size(); ++k) {
      ThunkSequence copy = program_.thunks;
      const std::string fault = edit(Sequences(&copy)[k]);
      if (fault.empty()) continue;
      ++planted;
      EXPECT_FALSE(Check(copy).ok()) << fault << "\n" << ToText(copy);
    }
    return planted;
  }

  static std::vector<ThunkSequence*> Sequences(ThunkSequence* thunks) {
    std::vector<ThunkSequence*> out = {thunks};
    for (Thunk& t : *thunks)
      for (ThunkSequence& n : t.nested)
        for (ThunkSequence* s : Sequences(&n)) out.push_back(s);
    return out;
  }

  template <typename Fn>
  static void EachSlice(ThunkSequence* thunks, const Fn& fn) {
    for (Thunk& t : *thunks) {
      for (Slice& s : t.reads) fn(&s);
      for (Slice& s : t.writes) fn(&s);
      fn(&t.scratch);
      fn(&t.predicate);
      for (ThunkSequence& n : t.nested) EachSlice(&n, fn);
    }
  }

  PlannedProgram program_;
};

TEST_P(PlanCheck, AWriteElsewhereIsFound) {
  int planted = 0;
  for (size_t at = 0; at < 32; ++at)
    planted += Plant([&](ThunkSequence* s) -> std::string {
      if (at >= s->size() || (*s)[at].writes.empty()) return "";
      (*s)[at].writes[0].offset += 64;
      return absl::StrCat((*s)[at].instruction->name(), " writes 64 bytes further");
    });
  EXPECT_GE(planted, 10);
}

TEST_P(PlanCheck, AReadElsewhereIsFound) {
  int planted = 0;
  for (size_t at = 0; at < 32; ++at)
    planted += Plant([&](ThunkSequence* s) -> std::string {
      if (at >= s->size() || (*s)[at].reads.empty() || (*s)[at].reads[0].kind != Slice::kTemp) return "";
      (*s)[at].reads[0].offset += 64;
      return absl::StrCat((*s)[at].instruction->name(), " reads 64 bytes further");
    });
  EXPECT_GE(planted, 4);
}

TEST_P(PlanCheck, StepsInTheWrongOrderAreFound) {
  int planted = 0;
  for (size_t at = 0; at + 1 < 32; ++at)
    planted += Plant([&](ThunkSequence* s) -> std::string {
      if (at + 1 >= s->size()) return "";
      Thunk &a = (*s)[at], &b = (*s)[at + 1];
      bool depends = false;
      for (const Slice& w : a.writes)
        for (const Slice& r : b.reads) depends = depends || w == r;
      if (!depends) return "";
      std::swap(a, b);
      return absl::StrCat(b.instruction->name(), " runs after ", a.instruction->name());
    });
  EXPECT_GE(planted, 3);
}

TEST_P(PlanCheck, AStepLeftOutIsFound) {
  int copies = 0;
  for (size_t at = 0; at < 32; ++at)
    Plant([&](ThunkSequence* s) -> std::string {
      if (at >= s->size()) return "";
      copies += (*s)[at].kind == ThunkKind::Copy;
      const std::string name = (*s)[at].instruction->name();
      s->erase(s->begin() + static_cast<std::ptrdiff_t>(at));
      return absl::StrCat("without ", name);
    });
  EXPECT_GE(copies, 1);
}

TEST_P(PlanCheck, WritesToArgumentsAndConstantsAreFound) {
  int planted = 0;
  for (size_t at = 0; at < 32; ++at)
    for (const Slice::Kind kind : {Slice::kParameter, Slice::kConstant})
      planted += Plant([&](ThunkSequence* s) -> std::string {
        if (at >= s->size() || (*s)[at].writes.empty() || (*s)[at].writes[0].kind != Slice::kTemp) return "";
        const Slice before = (*s)[at].writes[0];
        const Slice after{kind, kind == Slice::kParameter ? 1 : 0, 0, before.size};
        EachSlice(s, [&](Slice* x) {
          if (*x == before) *x = after;
        });
        return absl::StrCat((*s)[at].instruction->name(), " overwrites what is the caller's");
      });
  EXPECT_GE(planted, 4);
}

TEST_P(PlanCheck, TwoLiveValuesInOnePlaceAreFound) {
  int planted = 0;
  const std::vector<Allocation>& temps = program_.plan.buffers.temps();
  for (const Allocation& a : temps)
    for (const Allocation& b : temps) {
      // `a` is still read after whatever writes `b` first; of what a choice needs, no branch needs all.
      const bool both_live = a.begin < b.begin && b.begin + 1 < a.end;
      const std::string& where = b.value->parent()->name();
      if (where == "left" || where == "right") continue;
      if (&a == &b || a.slice.size < b.slice.size || b.slice.size < 16 || !both_live) continue;
      ThunkSequence copy = program_.thunks;
      EachSlice(&copy, [&](Slice* s) {
        if (s->size == b.slice.size && *s == b.slice) *s = {a.slice.kind, a.slice.index, a.slice.offset, b.slice.size};
      });
      ++planted;
      EXPECT_FALSE(Check(copy).ok()) << a.owner << " and " << b.owner << "\n" << ToText(copy);
    }
  EXPECT_GE(planted, 2);
}

TEST_P(PlanCheck, AResultThatIsNotWhereTheCallerLooksIsFound) {
  // The donated argument must hold its result; without the alias the plan writes what is not its own.
  program_.module->aliases.clear();
  EXPECT_FALSE(Check(program_.thunks).ok());
}

INSTANTIATE_TEST_SUITE_P(Targets, PlanCheck, testing::Values(ProgramTarget::kCpu, ProgramTarget::kGpu),
                         [](const auto& p) { return p.param == ProgramTarget::kCpu ? "Cpu" : "Gpu"; });

// What the plan is without copy insertion: buffer assignment puts an update where its operand lies, whoever reads it.
TEST(PlanWithoutCopies, IsRefused) {
  const char* const programs[] = {// The array is an argument of the caller.
                                  R"(HloModule m
ENTRY e {
  x = f32[64] parameter(0)
  u = f32[8] parameter(1)
  i = s32[] constant(3)
  ROOT r = f32[64] dynamic-update-slice(x, u, i)
})",
                                  // The updates are the array that is updated.
                                  R"(HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
set {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}
ENTRY e {
  x = f32[12] parameter(0)
  i = s32[12] parameter(1)
  ROOT r = f32[12] scatter(x, i, x), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=set
})",
                                  // The old array is read afterwards.
                                  R"(HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  x = f32[64] parameter(0)
  u = f32[8] parameter(1)
  i = s32[] constant(3)
  y = f32[64] dynamic-update-slice(x, u, i)
  z = f32[64] reverse(x), dimensions={0}, control-predecessors={y}
  ROOT r = (f32[64], f32[64]) tuple(y, z)
})"};
  for (const char* text : programs) {
    auto m = ParseHlo(text, "p.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    ASSERT_TRUE(CpuPipeline().Run(**m, {}).ok());
    auto plan = PlanMemory(**m);
    if (!plan.ok()) continue;  // buffer assignment saw it
    auto thunks = BuildThunks(**m, plan->schedule, plan->buffers);
    ASSERT_TRUE(thunks.ok()) << thunks.status();
    const absl::Status s = CheckPlan(**m, plan->buffers, *thunks);
    EXPECT_EQ(s.code(), absl::StatusCode::kInternal) << text << ToText(*thunks);
  }
}

}  // namespace
}  // namespace kiln
