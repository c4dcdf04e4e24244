// Forms that HLO text allows, each with what it means: printed, every module is spelled out, and reads as itself again.
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr char kFunctions[] = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
less { c = f32[] parameter(0)
  d = f32[] parameter(1)
  ROOT l = pred[] compare(c, d), direction=LT }
negated { n = f32[8] parameter(0)
  ROOT o = f32[8] negate(n) }
step { x.1 = f32[8] parameter(0)
  carry = f32[8] parameter(1)
  y.1 = f32[8] add(x.1, carry)
  ROOT both = (f32[8], f32[8]) tuple(y.1, y.1) }
)";
constexpr char kArguments[] = R"(
ENTRY e {
  x = f32[4,8] parameter(0)
  z = f32[] parameter(1)
  i = s32[] parameter(2)
  v = f32[8] parameter(3)
  w = f32[8,16] parameter(4)
  c64s = c64[4,8] parameter(5)
  k = s32[2,1] parameter(6)
  u = f32[2,8] parameter(7)
  p = pred[] parameter(8)
  i3 = f32[4,8,8] parameter(9)
  w3 = f32[3,8,8] parameter(10)
)";

struct Form {
  const char* text;     // of the root, without "ROOT r = "
  const char* printed;  // of it, up to its metadata
};

class Reads : public testing::TestWithParam<Form> {};

TEST_P(Reads, AsItIsPrinted) {
  const std::string text = absl::StrCat(kFunctions, kArguments, "  ROOT r = ", GetParam().text, "\n}\n");
  auto m = ParseHlo(text, "form.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  ASSERT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  const std::string once = ToText(**m);
  EXPECT_NE(once.find(absl::StrCat("ROOT %r = ", GetParam().printed)), std::string::npos) << once;
  auto again = ParseHlo(once, "again.hlo");
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << once;
  EXPECT_EQ(ToText(**again), once);
}

// What XLA's reader makes of each of these is what is printed here.
INSTANTIATE_TEST_SUITE_P(
    Convolutions, Reads,
    testing::Values(Form{"f32[4,8] custom-call(x), custom_call_target=\"c\", dim_labels=b0f1?_01io?->b01f?, "
                         "padding_type=PADDING_SAME",
                         "f32[4,8] custom-call(%x), dim_labels=b0f1?_01io?->b01f?, padding_type=PADDING_SAME"},
                    Form{"f32[4,16] convolution(x, w), dim_labels=bf_io->bf, convolution_kind=fprop",
                         "f32[4,16] convolution(%x, %w), dim_labels=bf_io->bf"},
                    Form{"f32[4,8,8] convolution(i3, w3), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, "
                         "convolution_kind=wgrad",
                         "f32[4,8,8] convolution(%i3, %w3), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f"},
                    Form{"f32[4,8,8] convolution(i3, w3), convolution_kind=dgrad, window={size=3 pad=1_1}, "
                         "dim_labels=b0f_0io->b0f",
                         "f32[4,8,8] convolution(%i3, %w3), window={size=3 pad=1_1 rhs_reversal=1}, "
                         "dim_labels=b0f_0io->b0f"}));

INSTANTIATE_TEST_SUITE_P(
    ShapesLeftOut, Reads,
    testing::Values(
        Form{"negate(x)", "f32[4,8] negate(%x)"}, Form{"compare(x, x), direction=LT", "pred[4,8] compare"},
        Form{"dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[4,16] dot"},
        Form{"reduce(x, z), dimensions={0}, to_apply=add", "f32[8] reduce"},
        Form{"reduce-window(x, z), window={size=2x1}, to_apply=add", "f32[3,8] reduce-window"},
        Form{"sort(x), dimensions={1}, to_apply=less", "f32[4,8] sort"},
        Form{"transpose(x), dimensions={1,0}", "f32[8,4] transpose"},
        Form{"concatenate(x, x), dimensions={1}", "f32[4,16] concatenate"},
        Form{"pad(x, z), padding=1_1x0_0_1", "f32[6,15] pad"}, Form{"tuple(x, i)", "(f32[4,8], s32[]) tuple"},
        Form{"call(v), to_apply=negated", "f32[8] call"},
        Form{"conditional(p, v, v), true_computation=negated, false_computation=negated", "f32[8] conditional"},
        Form{"fft(x), fft_type=RFFT, fft_length={8}", "c64[4,5] fft"},
        Form{"fft(c64s), fft_type=IRFFT, fft_length={14}", "f32[4,14] fft"},
        Form{"set-dimension-size(x, i), dimensions={0}", "f32[<=4,8] set-dimension-size"},
        Form{"topk(x), k=3", "(f32[4,3], s32[4,3]) topk"},
        Form{"gather(x, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
             "slice_sizes={1,8}",
             "f32[2,8] gather"},
        Form{"scatter(x, k, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
             "index_vector_dim=1, to_apply=add",
             "f32[4,8] scatter"},
        Form{"scan(x, v), dimensions={0}, num_carries=1, to_apply=step",
             "(f32[4,8], f32[8]) scan(%x, %v), dimensions={0}"},
        Form{"partition-id()", "u32[] partition-id"}));

INSTANTIATE_TEST_SUITE_P(Operands, Reads,
                         testing::Values(
                             // Written in place, without shapes, inside others.
                             Form{"f32[4,8] add(add(x, x), x)", "f32[4,8] add(%add"},
                             Form{"f32[4,8] add(f32[4,8] x, negate(negate(x)))", "f32[4,8] add(%x, %negate"},
                             Form{"f32[8,4] transpose(add(x, x)), dimensions={1,0}", "f32[8,4] transpose"}));

INSTANTIATE_TEST_SUITE_P(
    Defaults, Reads,
    testing::Values(Form{"f32[4,8] broadcast(z)", "f32[4,8] broadcast(%z), dimensions={}"},
                    Form{"f32[4,8] broadcast(negate(z))", "f32[4,8] broadcast(%negate), dimensions={}"},
                    Form{"f32[8,16] {1,0} negate(w)", "f32[8,16]{1,0} negate"},
                    Form{"f32[9] pad(v, z), padding=0_1\n  x_2 = f32[8] negate(v)", "f32[9] pad(%v, %z), padding=0_1"},
                    Form{"f32[2,2] constant({ {1, 2} {3, 4} })", "f32[2,2] constant({{1, 2}, {3, 4}})"},
                    Form{"f32[8] call(v), to_apply={ q = f32[8] parameter(0) ROOT t = f32[8] negate(q) }",
                         "f32[8] call(%v), to_apply=%inline"}));

INSTANTIATE_TEST_SUITE_P(
    Wide, Reads,
    testing::Values(
        Form{"b(f32[4,8]) custom-call(x), custom_call_target=\"Pin\", output_to_operand_aliasing={{}: (0, {})}",
             "b(f32[4,8]) custom-call"},
        Form{"(f32[4,8], s32[]) copy(tuple(x, i))", "(f32[4,8], s32[]) copy"},
        Form{"pred[4,8,4] bitcast-convert(x)", "pred[4,8,4] bitcast-convert"}));

std::string Entry(absl::string_view text) {
  auto m = ParseHlo(text, "entry.hlo");
  if (!m.ok()) return std::string(m.status().message());
  return std::string((*m)->entry()->root()->name());
}

TEST(EntryComputation, IsTheLastWhereNoneIsMarked) {
  EXPECT_EQ(Entry("HloModule m\nf2 { x = f32[] parameter(0)\n main = f32[] negate(x) }\n"
                  "main { a = f32[] parameter(0)\n c = f32[] call(a), to_apply=f2\n d = f32[] add(c, c) }"),
            "d");
  EXPECT_EQ(Entry("HloModule m\nf { x = f32[] parameter(0)\n n = f32[] negate(x) }\n"
                  "g { y = f32[] parameter(0)\n c = f32[] call(y), to_apply={ z = f32[] parameter(0) } }"),
            "c");
  EXPECT_EQ(Entry("HloModule m\nENTRY g { y = f32[] parameter(0) }\nf { x = f32[] parameter(0) }"), "y");
}

TEST(OmittedShapes, AreInferredThroughLaterComputations) {
  auto m = ParseHlo(
      "HloModule m\nENTRY e { x = f32[4] parameter(0)\n a = call(x), to_apply=f\n ROOT r = add(a, a) }\n"
      "f { p = f32[4] parameter(0)\n ROOT q = call(p), to_apply=g }\n"
      "g { s = f32[4] parameter(0)\n ROOT t = negate(s) }",
      "later.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  EXPECT_EQ((*m)->entry()->root()->shape().ToString(), "f32[4]");
}

TEST(AsynchronousForms, AreAStartAroundWhatTheyName) {
  auto m = ParseHlo(
      "HloModule m\nf { p = f32[4] parameter(0)\n ROOT n = f32[4] negate(p) }\n"
      "ENTRY e { x = f32[4] parameter(0)\n"
      " s = ((f32[4]), f32[4], s32[]) call-start(x), to_apply=f, async_execution_thread=\"t\"\n"
      " u = ((f32[4]), f32[4], s32[]) call-update(s)\n ROOT d = f32[4] call-done(u) }",
      "async.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  const std::string once = ToText(**m);
  EXPECT_NE(once.find("execution_thread=\"t\""), std::string::npos) << once;
  auto again = ParseHlo(once, "again.hlo");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToText(**again), once);
}

TEST(ElidedConstants, AreRefusedUnlessTheModuleIsOnlyLookedAt) {
  for (const char* text : {"HloModule m\nENTRY e { ROOT c = f32[1000]{0} constant({...}) }",
                           "HloModule m\nENTRY e { ROOT c = f32[2,2] constant({ {...} }) }",
                           "HloModule m\nENTRY e { ROOT c = (f32[2], s32[3]) constant(({...}, {...})) }"}) {
    auto m = ParseHlo(text, "elided.hlo");
    ASSERT_FALSE(m.ok()) << text;
    EXPECT_NE(m.status().message().find("elided.hlo:2:"), absl::string_view::npos) << m.status();
    EXPECT_NE(m.status().message().find("were elided when the program was printed"), absl::string_view::npos);
    m = ParseHloToLookAt(text, "elided.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
    const std::string once = ToText(**m);
    EXPECT_NE(once.find("constant({...})"), std::string::npos) << once;
    auto again = ParseHloToLookAt(once, "again.hlo");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ToText(**again), once);
  }
}

}  // namespace
}  // namespace kiln
