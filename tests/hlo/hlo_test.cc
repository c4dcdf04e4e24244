// HLO text: round trips, and every group of the verifier refusing what it must.
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/import/import.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr char kEverything[] =
    R"(HloModule all, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, entry_computation_layout={(f32[4,8]{1,0:T(8,128)S(1)}, (s32[], token[]))->(f32[4,8]{1,0}, f32[4]{0})}, replica_count=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b), metadata={op_name="x/y" source_line=3}
}

async_computation {
  p = f32[4,8] parameter(0)
  ROOT n = f32[4,8] negate(p)
}

ENTRY main {
  x = f32[4,8]{1,0} parameter(0), sharding={devices=[2,1]0,1}
  t = (s32[], token[]) parameter(1)
  c = f32[2,2] constant({{nan, inf}, {-inf, 1.5}})
  d = f32[<=5] custom-call(), custom_call_target="dyn", backend_config={"a":[1,2]}
  z = f32[] constant(0)
  st = ((f32[4,8]), f32[4,8], u32[]) async-start(x), calls=async_computation
  n = f32[4,8] async-done(st)
  r = f32[4] reduce(n, z), dimensions={1}, to_apply=add, control-predecessors={c}
  ROOT out = (f32[4,8], f32[4]) tuple(n, r), frontend_attributes={k="v"}
}
)";

TEST(Text, PrintIsAFixedPoint) {
  auto m = ParseHlo(kEverything, "all.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  const std::string once = ToText(**m);
  auto again = ParseHlo(once, "again.hlo");
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << once;
  EXPECT_EQ(ToText(**again), once);
  EXPECT_NE(once.find("S(1)"), std::string::npos);
  EXPECT_NE(once.find("control-predecessors={%c}"), std::string::npos);
  EXPECT_NE(once.find("sharding={devices=[2,1]0,1}"), std::string::npos);
}

TEST(Text, CloneKeepsTheText) {
  auto m = ParseHlo(kEverything, "all.hlo");
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(ToText(*(*m)->Clone()), ToText(**m));
}

struct Bad {
  const char* why;
  const char* text;
};

class Refused : public testing::TestWithParam<Bad> {};

TEST_P(Refused, WithOneErrorThatSaysWhereAndWhy) {
  auto m = ParseHlo(GetParam().text, "bad.hlo");
  absl::Status s = m.ok() ? VerifyModule(**m) : m.status();
  ASSERT_FALSE(s.ok());
  EXPECT_NE(std::string(s.message()).find(GetParam().why), std::string::npos) << s.message();
  EXPECT_EQ(std::string(s.message()).rfind("bad.hlo:", 0), 0u) << s.message();
  EXPECT_NE(std::string(s.message()).find(": error: "), std::string::npos) << s.message();
}

INSTANTIATE_TEST_SUITE_P(
    Parser, Refused,
    testing::Values(Bad{"the text ends", "HloModule m\nENTRY e { x = f32[2] parameter(0"},
                    Bad{"unknown opcode 'frobnicate'",
                        "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] frobnicate(x) }"},
                    Bad{"operand 'q' is not defined", "HloModule m\nENTRY e { y = f32[2] negate(q) }"},
                    Bad{"unknown attribute 'color'",
                        "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] negate(x), color=3 }"},
                    Bad{"computation 'f' is not defined",
                        "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] call(x), to_apply=f }"},
                    Bad{"more than", "HloModule m\nENTRY e { x = f32[99999999999,99999999999] parameter(0) }"},
                    Bad{"does not hold 3 elements", "HloModule m\nENTRY e { x = f32[3] constant({1, 2, 3, 4}) }"}));

INSTANTIATE_TEST_SUITE_P(Structure, Refused,
                         testing::Values(Bad{
                             "calls itself",
                             "HloModule m\nf { p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=f }\nENTRY e "
                             "{ x = f32[] parameter(0)\n ROOT y = f32[] call(x), to_apply=f }"}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, Refused,
    testing::Values(
        Bad{"operand shapes differ",
            "HloModule m\nENTRY e { a = f32[2] parameter(0)\n b = f32[3] parameter(1)\n ROOT s = f32[2] add(a, b) }"},
        Bad{"contracting extents differ",
            "HloModule m\nENTRY e { a = f32[8,64] parameter(0)\n b = f32[32,16] parameter(1)\n ROOT d = f32[8,16] "
            "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
        Bad{"does not fit extent",
            "HloModule m\nENTRY e { a = f32[8] parameter(0)\n ROOT s = f32[4] slice(a), slice={[6:10]} }"},
        Bad{"takes integers or pred", "HloModule m\nENTRY e { a = f32[8] parameter(0)\n ROOT s = f32[8] not(a) }"},
        Bad{"its operands and attributes make it",
            "HloModule m\nENTRY e { a = f32[8] parameter(0)\n ROOT s = f32[4,2] transpose(a), dimensions={0} }"}));

INSTANTIATE_TEST_SUITE_P(
    Entry, Refused,
    testing::Values(
        Bad{"the entry layout says",
            "HloModule m, entry_computation_layout={(f32[3]{0})->f32[2]{0}}\nENTRY e { ROOT a = f32[2] parameter(0) }"},
        Bad{"lacks parameter 0", "HloModule m\nENTRY e { ROOT a = f32[2] parameter(1) }"}));

INSTANTIATE_TEST_SUITE_P(Fusions, Refused,
                         testing::Values(Bad{"'kMagic' is none of",
                                             "HloModule m\nf { ROOT p = f32[2] parameter(0) }\nENTRY e { a = f32[2] "
                                             "parameter(0)\n ROOT r = f32[2] fusion(a), kind=kMagic, calls=f }"}));

INSTANTIATE_TEST_SUITE_P(
    Control, Refused,
    testing::Values(
        Bad{"does not return pred",
            "HloModule m\nc { p = s32[] parameter(0)\n ROOT r = s32[] negate(p) }\nb { ROOT p = s32[] parameter(0) "
            "}\nENTRY e { a = s32[] parameter(0)\n ROOT w = s32[] while(a), condition=c, body=b }"},
        Bad{"has 1 parameters, not 2",
            "HloModule m\nf { ROOT p = f32[] parameter(0) }\nENTRY e { a = f32[4] parameter(0)\n z = f32[] "
            "constant(0)\n ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=f }"}));

INSTANTIATE_TEST_SUITE_P(Async, Refused,
                         testing::Values(Bad{
                             "operand is no all-reduce-start",
                             "HloModule m\nENTRY e { a = f32[4] parameter(0)\n ROOT r = f32[4] all-reduce-done(a) }"}));

INSTANTIATE_TEST_SUITE_P(
    Collectives, Refused,
    testing::Values(
        Bad{"is in two replica groups",
            "HloModule m\nf { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e { "
            "a = f32[4] parameter(0)\n ROOT r = f32[4] all-reduce(a), replica_groups={{0,1},{1,2}}, to_apply=f }"},
        Bad{"is the target of two pairs",
            "HloModule m\nENTRY e { a = f32[4] parameter(0)\n ROOT r = f32[4] collective-permute(a), "
            "source_target_pairs={{0,1},{2,1}} }"},
        Bad{"needs a channel_id",
            "HloModule m\nf { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e { "
            "a = f32[4] parameter(0)\n ROOT r = f32[4] all-reduce(a), replica_groups={{0}}, "
            "use_global_device_ids=true, to_apply=f }"}));

TEST(Layouts, ElementwiseOperandsMustAgreeWhenSensitive) {
  auto m =
      ParseHlo("HloModule m\nENTRY e { a = f32[2,3]{1,0} parameter(0)\n ROOT n = f32[2,3]{0,1} negate(a) }", "bad.hlo");
  ASSERT_TRUE(m.ok());
  EXPECT_TRUE(VerifyModule(**m).ok());
  EXPECT_FALSE(VerifyModule(**m, {true}).ok());
}

INSTANTIATE_TEST_SUITE_P(Aliases, Refused,
                         testing::Values(Bad{"of different sizes",
                                             "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\nENTRY e { a "
                                             "= f32[4] parameter(0)\n ROOT s = f32[2] slice(a), slice={[0:2]} }"},
                                         Bad{"names parameter 3",
                                             "HloModule m, input_output_alias={ {}: (3, {}, may-alias) }\nENTRY e { a "
                                             "= f32[4] parameter(0)\n ROOT s = f32[4] negate(a) }"}));

TEST(Import, GarbageIsOneError) {
  for (const char* text : {"", "module {", "\x01\x02\x03", "HloModule",
                           "module @m { func.func @main() -> tensor<2xf32> { return %x : tensor<2xf32> } }",
                           "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = \"stablehlo.add\"(%a) : "
                           "(tensor<f32>) -> tensor<f32> return %0 : tensor<f32> }"}) {
    auto m = ImportModule(text, "bad");
    absl::Status s = m.ok() ? VerifyModule(**m) : m.status();
    EXPECT_FALSE(s.ok()) << text;
    EXPECT_EQ(std::string(s.message()).rfind("bad:", 0), 0u) << s.message();
  }
}

TEST(Import, TruncatedTextNeverCrashes) {
  const std::string whole = kEverything;
  for (size_t n = 0; n < whole.size(); n += 7) {
    auto m = ImportModule(whole.substr(0, n), "cut");
    if (m.ok()) (void)VerifyModule(**m);
  }
}

}  // namespace
}  // namespace kiln
