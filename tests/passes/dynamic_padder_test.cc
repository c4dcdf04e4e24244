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
  auto changed = DynamicPadder(*padded, ctx);
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

TEST(DynamicPadder, ArgumentsAndResultsGetTheirSizes) {
  auto m = ParseHlo("HloModule m\nENTRY e { x = f32[<=8,4] parameter(0)\n ROOT n = f32[<=8,4] negate(x) }", "t.hlo");
  ASSERT_TRUE(m.ok());
  PassContext ctx;
  ASSERT_TRUE(DynamicPadder(**m, ctx).ok());
  ASSERT_EQ((*m)->entry()->parameters().size(), 2u);
  EXPECT_EQ((*m)->entry()->root()->shape().ToString(false), "(f32[8,4], s32[])");
}

}  // namespace
}  // namespace kiln
