// A program with a dynamic dimension, made static and masked, against the same program written for each size: garbage
// past the size must never reach a result.
#include "absl/strings/str_replace.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr char kProgram[] = R"(HloModule d
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a,b) }
most { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] maximum(a,b) }
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = pred[] compare(a,b), direction=LT }
ENTRY e {
 x = f32[8,4] parameter(0)
 k = s32[] parameter(1)
 y = $Y
 z = f32[] constant(0)
 low = f32[] constant(-1000)
 sums = f32[4] reduce(y, z), dimensions={0}, to_apply=add
 t = f32[4,$N] transpose(y), dimensions={1,0}
 gram = f32[4,4] dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 head = f32[$N,1] slice(y), slice={[0:$N],[0:1]}
 col = f32[$N] $RESHAPE(head)
 sorted = f32[$N] sort(col), dimensions={0}, to_apply=less
 w = f32[$N] reduce-window(sorted, z), window={size=3 pad=1_1}, to_apply=add
 wsum = f32[] reduce(w, low), dimensions={0}, to_apply=most
 back = f32[$N,4] reverse(y), dimensions={0}
 two = f32[$M,4] concatenate(back, y), dimensions={0}
 pv = f32[] constant(3)
 more = f32[$P,4] pad(two, pv), padding=1_2x0_0
 product = f32[$P,4] multiply(more, more)
 total = f32[4] reduce(product, z), dimensions={0}, to_apply=add
 ROOT r = (f32[4], f32[4,4], f32[], f32[4]) tuple(sums, gram, wsum, total)
})";

std::unique_ptr<Module> Program(int n) {
  const bool dynamic = n < 0;
  const std::string text = absl::StrReplaceAll(
      kProgram, {{"$Y", dynamic ? "f32[<=8,4] set-dimension-size(x, k), dimensions={0}"
                                : absl::StrCat("f32[", n, ",4] slice(x), slice={[0:", n, "],[0:4]}")},
                 {"slice={[0:$N],", absl::StrCat("slice={[0:", dynamic ? 8 : n, "],")},
                 {"$RESHAPE", "reshape"},
                 {"$N", dynamic ? "<=8" : absl::StrCat(n)},
                 {"$M", dynamic ? "<=16" : absl::StrCat(2 * n)},
                 {"$P", dynamic ? "<=19" : absl::StrCat(2 * n + 3)}});
  auto m = ParseHlo(text, "t.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  return std::move(*m);
}

TEST(DynamicPadder, EveryResultIsThatOfTheStaticProgram) {
  Literal x(Shape::Array(PrimitiveType::F32, {8, 4}));
  for (int64_t k = 0; k < x.size(); ++k) {
    Element e;
    e.re = static_cast<double>((k * 37) % 23) - 11;
    x.Set(k, e);
  }
  std::unique_ptr<Module> padded = Program(-1);
  PassContext ctx;
  auto changed = FindPass("dynamic-padder")->run(*padded, ctx);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(*changed);
  ASSERT_TRUE(VerifyModule(*padded).ok()) << VerifyModule(*padded);
  for (int n = 1; n <= 8; ++n) {
    const std::vector<Literal> args = {x, Literal::Int(PrimitiveType::S32, n)};
    auto got = Evaluate(*padded, args), want = Evaluate(*Program(n), args);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(want.ok()) << want.status();
    for (size_t r = 0; r < 4; ++r)
      EXPECT_EQ(got->elements()[r].ToString(), want->elements()[r].ToString()) << "size " << n << ", result " << r;
  }
}

// Operations on y = f32[$N,4], whose results are static.
struct Sized {
  const char *name, *body;
};
void PrintTo(const Sized& t, std::ostream* os) { *os << t.name; }

const Sized kSized[] = {
    {"GatherOfWindows", R"( i = s32[2,1] constant({{3},{1}})
 g = f32[2,$N] gather(y, i), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={$B,1}
 ROOT r = f32[2] reduce(g, z), dimensions={1}, to_apply=add)"},
    {"GatherOfRows", R"( i = s32[2,1] constant({{0},{1}})
 g = f32[2,4] gather(y, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
 ROOT r = f32[4] reduce(g, z), dimensions={0}, to_apply=add)"},
    {"GatherByIndices", R"( col = f32[$N,1] slice(y), slice={[0:$B],[0:1]}
 i = s32[$N,1] convert(col)
 g = f32[$N,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
 ROOT r = f32[4] reduce(g, z), dimensions={0}, to_apply=add)"},
    {"ScatterOfUpdates", R"( col = f32[$N,1] slice(y), slice={[0:$B],[0:1]}
 i = s32[$N,1] convert(col)
 ROOT r = f32[8,4] scatter(x, i, y), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add)"},
    {"ScatterOfUpdatesByFewBits", R"( col = f32[$N,1] slice(y), slice={[0:$B],[0:1]}
 a = f32[$N,1] abs(col)
 i = u8[$N,1] convert(a)
 wide = f32[300,4] broadcast(z), dimensions={}
 ROOT r = f32[300,4] scatter(wide, i, y), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add)"},
    {"ScatterInto", R"( i = s32[2,1] constant({{0},{0}})
 u = f32[2,4] slice(x), slice={[0:2],[0:4]}
 g = f32[$N,4] scatter(y, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
 ROOT r = f32[4] reduce(g, z), dimensions={0}, to_apply=add)"},
    {"ScatterOfWholeWindows", R"( i = s32[2,1] constant({{0},{2}})
 u = f32[$N,2] slice(y), slice={[0:$B],[1:3]}
 g = f32[$N,4] scatter(y, i, u), update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=add
 ROOT r = f32[4] reduce(g, z), dimensions={0}, to_apply=add)"},
    {"UpdateOfAPart", R"( wide = f32[12,4] broadcast(z), dimensions={}
 two = s32[] constant(2)
 zero = s32[] constant(0)
 ROOT r = f32[12,4] dynamic-update-slice(wide, y, two, zero))"},
    {"PartOfWhatMoves", R"( one = s32[] constant(1)
 zero = s32[] constant(0)
 part = f32[$N,2] dynamic-slice(y, zero, one), dynamic_slice_sizes={$B,2}
 ROOT r = f32[2] reduce(part, z), dimensions={0}, to_apply=add)"},
    {"GradientOfAPool", R"( m = f32[$H,4] reduce-window(y, low), window={size=2x1 stride=2x1}, to_apply=most
 g = f32[$N,4] select-and-scatter(y, m, z), window={size=2x1 stride=2x1}, select=notless, scatter=add
 product = f32[$N,4] multiply(g, y)
 ROOT r = f32[4] reduce(product, z), dimensions={0}, to_apply=add)"},
    {"BatchNorm", R"( s = f32[4] constant({1, 2, 3, 4})
 n = (f32[$N,4], f32[4], f32[4]) batch-norm-training(y, s, s), epsilon=0.001, feature_index=1
 v = f32[$N,4] get-tuple-element(n), index=0
 mean = f32[4] get-tuple-element(n), index=1
 variance = f32[4] get-tuple-element(n), index=2
 g = (f32[$N,4], f32[4], f32[4]) batch-norm-grad(y, s, mean, variance, v), epsilon=0.001, feature_index=1
 w = f32[$N,4] get-tuple-element(g), index=0
 both = f32[$N,4] multiply(v, w)
 sum = f32[4] reduce(both, z), dimensions={0}, to_apply=add
 ROOT r = (f32[4], f32[4], f32[4]) tuple(sum, mean, variance))"},
    {"ConvolutionOverFeatures", R"( t = f32[4,$N] transpose(y), dimensions={1,0}
 a = f32[1,4,$N] reshape(t)
 filter = f32[1,$N,4] reshape(y)
 ROOT r = f32[1,4,4] convolution(a, filter), window={size=1}, dim_labels=b0f_0io->b0f)"},
    {"TopKOfRows", R"( t = (f32[$N,2], s32[$N,2]) topk(y), k=2, largest=true
 v = f32[$N,2] get-tuple-element(t), index=0
 ROOT r = f32[2] reduce(v, z), dimensions={0}, to_apply=add)"},
    {"BitsOfRows", R"( b = s32[$N,4] bitcast-convert(y)
 f = f32[$N,4] convert(b)
 ROOT r = f32[4] reduce(f, z), dimensions={0}, to_apply=add)"},
    {"SolvesSideBySide", R"( a = f32[4,4] constant({{2,0,0,0},{1,4,0,0},{1,1,2,0},{1,1,1,8}})
 s = f32[$N,4] triangular-solve(a, y), left_side=false, lower=true, transpose_a=NO_TRANSPOSE
 ROOT r = f32[4] reduce(s, z), dimensions={0}, to_apply=add)"},
};

class SizedPrograms : public testing::TestWithParam<Sized> {};

std::unique_ptr<Module> SizedProgram(const std::string& body, int n) {
  constexpr char kBefore[] = R"(HloModule s
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a,b) }
most { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] maximum(a,b) }
notless { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = pred[] compare(a,b), direction=GE }
ENTRY e { x = f32[8,4] parameter(0)
 k = s32[] parameter(1)
 z = f32[] constant(0)
 low = f32[] constant(-1000)
 y = )";
  const bool dynamic = n < 0;
  const std::string bound = dynamic ? "8" : absl::StrCat(n);
  const std::string y = dynamic ? "f32[<=8,4] set-dimension-size(x, k), dimensions={0}\n"
                                : absl::StrCat("f32[", n, ",4] slice(x), slice={[0:", n, "],[0:4]}\n");
  auto m = ParseHlo(absl::StrCat(kBefore, y,
                                 absl::StrReplaceAll(body, {{"$B", bound},
                                                            {"$H", dynamic ? "<=4" : absl::StrCat(n / 2)},
                                                            {"$N", dynamic ? "<=8" : bound}}),
                                 "}"),
                    "t.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  PassContext ctx;
  for (const char* pass : {"batchnorm-expander", "dynamic-padder"}) {
    EXPECT_TRUE(FindPass(pass)->run(**m, ctx).ok()) << pass;
    EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  }
  return std::move(*m);
}

TEST_P(SizedPrograms, GiveWhatTheStaticOneGives) {
  Literal x(Shape::Array(PrimitiveType::F32, {8, 4}));
  for (int64_t k = 0; k < x.size(); ++k) {
    Element e;
    e.re = static_cast<double>((k * 37) % 23) - 11;
    x.Set(k, e);
  }
  const std::unique_ptr<Module> padded = SizedProgram(GetParam().body, -1);
  for (int n = 2; n <= 8; ++n) {
    const std::vector<Literal> args = {x, Literal::Int(PrimitiveType::S32, n)};
    auto got = Evaluate(*padded, args), want = Evaluate(*SizedProgram(GetParam().body, n), args);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(want.ok()) << want.status();
    EXPECT_EQ(got->ToString(), want->ToString()) << "size " << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, SizedPrograms, testing::ValuesIn(kSized),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(DynamicPadder, ArgumentsAndResultsGetTheirSizes) {
  auto m = ParseHlo("HloModule m\nENTRY e { x = f32[<=8,4] parameter(0)\n ROOT n = f32[<=8,4] negate(x) }", "t.hlo");
  ASSERT_TRUE(m.ok());
  PassContext ctx;
  ASSERT_TRUE(FindPass("dynamic-padder")->run(**m, ctx).ok());
  ASSERT_EQ((*m)->entry()->parameters().size(), 2u);
  EXPECT_EQ((*m)->entry()->root()->shape().ToString(false), "(f32[8,4], s32[])");
}

// Sizes that travel: what each program gives was worked out by hand.
struct Travel {
  const char* name;
  const char* body;  // after the functions below
  std::vector<std::vector<int64_t>> arguments, results;
};
void PrintTo(const Travel& t, std::ostream* os) { *os << t.name; }

constexpr char kFunctions[] = R"(HloModule t
add { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT s = s32[] add(a, b) }
)";

const Travel kTravels[] = {
    {"LoopState",
     R"(less { t = (s32[], s32[<=3]) parameter(0)
 k = s32[] get-tuple-element(t), index=0
 n = s32[] constant(2)
 ROOT l = pred[] compare(k, n), direction=LT }
step { t = (s32[], s32[<=3]) parameter(0)
 k = s32[] get-tuple-element(t), index=0
 one = s32[] constant(1)
 next = s32[] add(k, one)
 v = s32[<=3] get-tuple-element(t), index=1
 twice = s32[<=3] add(v, v)
 ROOT r = (s32[], s32[<=3]) tuple(next, twice) }
ENTRY e { x = s32[3] parameter(0)
 n = s32[] parameter(1)
 d = s32[<=3] set-dimension-size(x, n), dimensions={0}
 z = s32[] constant(0)
 t = (s32[], s32[<=3]) tuple(z, d)
 w = (s32[], s32[<=3]) while(t), condition=less, body=step
 y = s32[<=3] get-tuple-element(w), index=1
 ROOT r = s32[] reduce(y, z), dimensions={0}, to_apply=add })",
     {{1, 10, 100}, {2}},
     {{44}}},
    // Each iteration keeps one element less; the condition looks at the size.
    {"ASizeThatALoopChanges",
     R"(more { t = (s32[], s32[<=4]) parameter(0)
 v = s32[<=4] get-tuple-element(t), index=1
 n = s32[] get-dimension-size(v), dimensions={0}
 two = s32[] constant(2)
 ROOT l = pred[] compare(n, two), direction=GT }
step { t = (s32[], s32[<=4]) parameter(0)
 sum = s32[] get-tuple-element(t), index=0
 v = s32[<=4] get-tuple-element(t), index=1
 z = s32[] constant(0)
 s = s32[] reduce(v, z), dimensions={0}, to_apply=add
 next = s32[] add(sum, s)
 n = s32[] get-dimension-size(v), dimensions={0}
 one = s32[] constant(1)
 less = s32[] subtract(n, one)
 w = s32[<=4] set-dimension-size(v, less), dimensions={0}
 ROOT r = (s32[], s32[<=4]) tuple(next, w) }
ENTRY e { x = s32[4] parameter(0)
 z = s32[] constant(0)
 n = s32[] constant(4)
 d = s32[<=4] set-dimension-size(x, n), dimensions={0}
 t = (s32[], s32[<=4]) tuple(z, d)
 w = (s32[], s32[<=4]) while(t), condition=more, body=step
 sums = s32[] get-tuple-element(w), index=0
 y = s32[<=4] get-tuple-element(w), index=1
 s = s32[] reduce(y, z), dimensions={0}, to_apply=add
 ROOT r = (s32[], s32[]) tuple(sums, s) })",
     {{1, 10, 100, 1000}},
     {{1222}, {11}}},
    {"ATupleOfAChoice",
     R"(left { p = (s32[<=3,2]) parameter(0)
 v = s32[<=3,2] get-tuple-element(p), index=0
 a = s32[<=3,2] add(v, v)
 ROOT t = (s32[<=3,2], s32[<=3,2]) tuple(v, a) }
right { p = (s32[<=3,2]) parameter(0)
 v = s32[<=3,2] get-tuple-element(p), index=0
 one = s32[] constant(1)
 w = s32[<=3,2] set-dimension-size(v, one), dimensions={0}
 ROOT t = (s32[<=3,2], s32[<=3,2]) tuple(v, w) }
ENTRY e { x = s32[3,2] parameter(0)
 which = s32[] parameter(1)
 n = s32[] constant(2)
 d = s32[<=3,2] set-dimension-size(x, n), dimensions={0}
 t = (s32[<=3,2]) tuple(d)
 c = (s32[<=3,2], s32[<=3,2]) conditional(which, t, t), branch_computations={left, right}
 a = s32[<=3,2] get-tuple-element(c), index=0
 b = s32[<=3,2] get-tuple-element(c), index=1
 z = s32[] constant(0)
 s = s32[2] reduce(a, z), dimensions={0}, to_apply=add
 q = s32[2] reduce(b, z), dimensions={0}, to_apply=add
 ROOT r = (s32[2], s32[2]) tuple(s, q) })",
     {{1, 2, 10, 20, 100, 200}, {1}},
     {{11, 22}, {1, 2}}},
    {"AnArrayOfAChoice",
     R"(left { p = s32[<=3] parameter(0)
 ROOT a = s32[<=3] add(p, p) }
right { p = s32[<=3] parameter(0)
 ROOT a = s32[<=3] negate(p) }
ENTRY e { x = s32[3] parameter(0)
 which = pred[] parameter(1)
 n = s32[] constant(2)
 d = s32[<=3] set-dimension-size(x, n), dimensions={0}
 c = s32[<=3] conditional(which, d, d), true_computation=left, false_computation=right
 z = s32[] constant(0)
 ROOT s = s32[] reduce(c, z), dimensions={0}, to_apply=add })",
     {{1, 10, 100}, {1}},
     {{22}}},
    {"BarriersAndNestedTuples",
     R"(ENTRY e { x = s32[4] parameter(0)
 n = s32[] parameter(1)
 d = s32[<=4] set-dimension-size(x, n), dimensions={0}
 inner = (s32[4], s32[<=4]) tuple(x, d)
 outer = ((s32[4], s32[<=4]), s32[4]) tuple(inner, x)
 b = ((s32[4], s32[<=4]), s32[4]) opt-barrier(outer)
 i = (s32[4], s32[<=4]) get-tuple-element(b), index=0
 w = s32[4] get-tuple-element(i), index=0
 v = s32[<=4] get-tuple-element(i), index=1
 z = s32[] constant(0)
 s = s32[] reduce(v, z), dimensions={0}, to_apply=add
 q = s32[] reduce(w, z), dimensions={0}, to_apply=add
 ROOT r = (s32[], s32[]) tuple(s, q) })",
     {{1, 10, 100, 1000}, {3}},
     {{111}, {1111}}},
    {"ACallTwiceWithDifferentSizes",
     R"(sum { p = s32[<=4] parameter(0)
 z = s32[] constant(0)
 ROOT s = s32[] reduce(p, z), dimensions={0}, to_apply=add }
ENTRY e { x = s32[4] parameter(0)
 one = s32[] constant(1)
 three = s32[] constant(3)
 a = s32[<=4] set-dimension-size(x, one), dimensions={0}
 b = s32[<=4] set-dimension-size(x, three), dimensions={0}
 p = s32[] call(a), to_apply=sum
 q = s32[] call(b), to_apply=sum
 ROOT r = (s32[], s32[]) tuple(p, q) })",
     {{1, 10, 100, 1000}},
     {{1}, {111}}},
    {"ALoopInALoop",
     R"(less { t = (s32[], (s32[<=3], s32[])) parameter(0)
 k = s32[] get-tuple-element(t), index=0
 n = s32[] constant(2)
 ROOT l = pred[] compare(k, n), direction=LT }
inner { t = (s32[], (s32[<=3], s32[])) parameter(0)
 k = s32[] get-tuple-element(t), index=0
 one = s32[] constant(1)
 next = s32[] add(k, one)
 p = (s32[<=3], s32[]) get-tuple-element(t), index=1
 v = s32[<=3] get-tuple-element(p), index=0
 a = s32[] get-tuple-element(p), index=1
 z = s32[] constant(0)
 s = s32[] reduce(v, z), dimensions={0}, to_apply=add
 b = s32[] add(a, s)
 q = (s32[<=3], s32[]) tuple(v, b)
 ROOT r = (s32[], (s32[<=3], s32[])) tuple(next, q) }
outer { t = (s32[], (s32[<=3], s32[])) parameter(0)
 k = s32[] get-tuple-element(t), index=0
 one = s32[] constant(1)
 next = s32[] add(k, one)
 p = (s32[<=3], s32[]) get-tuple-element(t), index=1
 z = s32[] constant(0)
 i = (s32[], (s32[<=3], s32[])) tuple(z, p)
 w = (s32[], (s32[<=3], s32[])) while(i), condition=less, body=inner
 q = (s32[<=3], s32[]) get-tuple-element(w), index=1
 ROOT r = (s32[], (s32[<=3], s32[])) tuple(next, q) }
ENTRY e { x = s32[3] parameter(0)
 n = s32[] parameter(1)
 d = s32[<=3] set-dimension-size(x, n), dimensions={0}
 z = s32[] constant(0)
 p = (s32[<=3], s32[]) tuple(d, z)
 t = (s32[], (s32[<=3], s32[])) tuple(z, p)
 w = (s32[], (s32[<=3], s32[])) while(t), condition=less, body=outer
 q = (s32[<=3], s32[]) get-tuple-element(w), index=1
 ROOT r = s32[] get-tuple-element(q), index=1 })",
     {{1, 10, 100}, {2}},
     {{44}}},
    // A result's size is a result; the initial value of a product is not taken once more for each element left out.
    {"AnInitialValueThatIsNotNeutral",
     R"(ENTRY e { x = s32[4] parameter(0)
 n = s32[] parameter(1)
 d = s32[<=4] set-dimension-size(x, n), dimensions={0}
 five = s32[] constant(5)
 s = s32[] reduce(d, five), dimensions={0}, to_apply=add
 ROOT r = (s32[<=4], s32[]) tuple(d, s) })",
     {{1, 10, 100, 1000}, {2}},
     {{1, 10, 100, 1000}, {16}, {2}}},
};

class SizesTravel : public testing::TestWithParam<Travel> {};

TEST_P(SizesTravel, WithTheirValues) {
  auto m = ParseHlo(std::string(kFunctions) + GetParam().body, "t.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  ASSERT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  PassContext ctx;
  auto changed = FindPass("dynamic-padder")->run(**m, ctx);
  ASSERT_TRUE(changed.ok()) << changed.status();
  ASSERT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  std::vector<Literal> arguments;
  for (size_t p = 0; p < GetParam().arguments.size(); ++p) {
    Literal l((*m)->entry()->parameter(static_cast<int64_t>(p))->shape());
    for (int64_t k = 0; k < l.size(); ++k) {
      Element e;
      e.i = GetParam().arguments[p][static_cast<size_t>(k)];
      l.Set(k, e);
    }
    arguments.push_back(l);
  }
  auto got = Evaluate(**m, arguments);
  ASSERT_TRUE(got.ok()) << got.status();
  const std::vector<Literal> leaves = got->shape().IsTuple() ? got->elements() : std::vector<Literal>{*got};
  ASSERT_EQ(leaves.size(), GetParam().results.size());
  for (size_t r = 0; r < leaves.size(); ++r)
    for (int64_t k = 0; k < leaves[r].size(); ++k)
      EXPECT_EQ(leaves[r].Get(k).i, GetParam().results[r][static_cast<size_t>(k)]) << "result " << r << ", " << k;
}

INSTANTIATE_TEST_SUITE_P(Programs, SizesTravel, testing::ValuesIn(kTravels),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(DynamicPadder, RefusesASizeThatNobodyStated) {
  auto m = ParseHlo("HloModule m\nENTRY e { ROOT i = s32[<=4] iota(), iota_dimension=0 }", "t.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  PassContext ctx;
  EXPECT_EQ(FindPass("dynamic-padder")->run(**m, ctx).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace kiln
