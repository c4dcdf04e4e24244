// Each pass on a program where it fires and on a look-alike that it must leave alone; `changed` must be the truth.
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

struct Case {
  const char* pass;
  const char* text;
  bool fires;
  const char* has;    // in the entry afterwards
  const char* lacks;  // not in the module afterwards
};

class Passes : public testing::TestWithParam<Case> {};

TEST_P(Passes, FiresOrRefusesTruthfully) {
  const Case& c = GetParam();
  auto m = ParseHlo(c.text, "t.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  ASSERT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  const std::string before = ToText(**m);
  const PassInfo* pass = FindPass(c.pass);
  ASSERT_NE(pass, nullptr);
  PassContext ctx;
  auto changed = pass->run(**m, ctx);
  ASSERT_TRUE(changed.ok()) << changed.status();
  const std::string after = ToText(**m);
  EXPECT_EQ(*changed, c.fires) << after;
  EXPECT_EQ(before != after, c.fires) << after;
  EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m) << after;
  if (c.has) {
    EXPECT_NE(after.find(c.has), std::string::npos) << after;
  }
  if (c.lacks) {
    EXPECT_EQ(after.find(c.lacks), std::string::npos) << after;
  }
  // Without fuel nothing may change, and nothing may be said to have.
  if (c.fires && std::string(c.pass) != "dce" && std::string(c.pass) != "layout-assignment" &&
      std::string(c.pass) != "reshape-decomposer" && std::string(c.pass) != "flatten-call-graph" &&
      std::string(c.pass) != "optimization-barrier-expander" && std::string(c.pass) != "fusion-wrapper") {
    auto again = ParseHlo(c.text, "t.hlo");
    PassContext empty;
    empty.fuel = 0;
    auto none = pass->run(**again, empty);
    ASSERT_TRUE(none.ok());
    EXPECT_FALSE(*none) << c.pass;
  }
}

const std::vector<Case> kCases = {
    Case{"dynamic-padder",
         "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e { x "
         "= "
         "f32[8] parameter(0)\n n = s32[] parameter(1)\n y = f32[<=8] set-dimension-size(x, n), dimensions={0}\n z = "
         "f32[] "
         "constant(0)\n ROOT r = f32[] reduce(y, z), dimensions={0}, to_apply=add }",
         true, "select(", "set-dimension-size"},
    Case{"dynamic-padder",
         "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e { x "
         "= "
         "f32[8] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }",
         false, nullptr, nullptr},
    Case{"custom-call-decomposer",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] custom-call(x), "
         "custom_call_target=\"xla_builder.math.Asin\" }",
         true, " asin(", "custom-call("},
    Case{"custom-call-decomposer",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] custom-call(x), "
         "custom_call_target=\"my_asin\" }",
         false, nullptr, nullptr},
    Case{"custom-call-layouts",
         "HloModule m\nENTRY e { x = f32[2,3] parameter(0)\n ROOT r = f32[2,3]{0,1} custom-call(x), "
         "custom_call_target=\"f\", operand_layout_constraints={f32[2,3]{0,1}} }",
         true, "f32[3,2] custom-call(", "constraints"},
    Case{"custom-call-layouts",
         "HloModule m\nENTRY e { x = f32[2,3] parameter(0)\n ROOT r = f32[2,3]{1,0} custom-call(x), "
         "custom_call_target=\"f\", operand_layout_constraints={f32[2,3]{1,0}} }",
         false, nullptr, nullptr},
    Case{"defuser",
         "HloModule m\nf { a = f32[4] parameter(0)\n ROOT n = f32[4] negate(a) }\nENTRY e { x = f32[4] parameter(0)\n "
         "ROOT r = "
         "f32[4] fusion(x), kind=kLoop, calls=f }",
         true, "negate(", "fusion("},
    Case{"defuser", "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] negate(x) }", false, nullptr,
         nullptr},
    Case{"layout-normalization",
         "HloModule m\nENTRY e { x = f32[2,3]{0,1} parameter(0)\n ROOT r = f32[6]{0} bitcast(x) }", true, "transpose(",
         "bitcast("},
    Case{"layout-normalization",
         "HloModule m\nENTRY e { x = f32[2,3]{1,0} parameter(0)\n ROOT r = f32[6]{0} bitcast(x) }", false, nullptr,
         nullptr},
    Case{"bitcast-dtypes-expander",
         "HloModule m\nENTRY e { x = s4[3,2] parameter(0)\n ROOT r = s8[3] bitcast-convert(x) }", true, "shift-left",
         "bitcast-convert"},
    Case{"bitcast-dtypes-expander",
         "HloModule m\nENTRY e { x = f32[3] parameter(0)\n ROOT r = s8[3,4] bitcast-convert(x) }", false, nullptr,
         nullptr},
    Case{"cholesky-expander",
         "HloModule m\nENTRY e { x = c64[3,3] parameter(0)\n ROOT r = c64[3,3] cholesky(x), lower=true }", true,
         "while(", "cholesky("},
    Case{"cholesky-expander",
         "HloModule m\nENTRY e { x = f32[3,3] parameter(0)\n ROOT r = f32[3,3] cholesky(x), lower=true }", false,
         nullptr, nullptr},
    Case{"collective-expander",
         "HloModule m, replica_count=2\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, "
         "b) }\n"
         "ENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add }",
         true, "f32[2,4] all-gather", "all-reduce("},
    Case{"collective-expander",
         "HloModule m, replica_count=2\nENTRY e { x = f32[1,4] parameter(0)\n ROOT r = f32[2,4] all-gather(x), "
         "dimensions={0}, "
         "replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true }",
         false, nullptr, nullptr},
    Case{"convert-async-collectives-to-sync",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n s = (f32[4], f32[4], u32[]) copy-start(x)\n ROOT r = f32[4] "
         "copy-done(s) }",
         true, "copy(", "copy-start"},
    Case{"convert-async-collectives-to-sync",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] copy(x) }", false, nullptr, nullptr},
    Case{"ragged-dot-rewriter",
         "HloModule m\nENTRY e { a = f32[5,3] parameter(0)\n b = f32[2,3,4] parameter(1)\n g = s32[2] parameter(2)\n "
         "ROOT r "
         "= f32[5,4] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
         "rhs_group_dims={0} }",
         true, " dot(", "ragged-dot("},
    Case{"ragged-dot-rewriter",
         "HloModule m\nENTRY e { a = f32[5,3] parameter(0)\n b = f32[3,4] parameter(1)\n ROOT r = f32[5,4] dot(a, b), "
         "lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
         false, nullptr, nullptr},
    Case{"rng-expander",
         "HloModule m\nENTRY e { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[7] rng(a, b), "
         "distribution=rng_normal }",
         true, "rng-bit-generator", " rng("},
    Case{"rng-expander",
         "HloModule m\nENTRY e { s = u64[2] parameter(0)\n ROOT r = (u64[2], u32[4]) rng-bit-generator(s), "
         "algorithm=rng_philox }",
         false, nullptr, nullptr},
    Case{
        "scaled-dot-rewriter",
        "HloModule m\nENTRY e { a = f8e4m3fn[4,64] parameter(0)\n b = f8e4m3fn[8,64] parameter(1)\n p = f8e8m0fnu[4,2] "
        "parameter(2)\n q = f8e8m0fnu[8,2] parameter(3)\n ROOT r = f32[4,8] scaled-dot(a, b, p, q), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={1} }",
        true, " dot(", "scaled-dot("},
    Case{"scaled-dot-rewriter",
         "HloModule m\nENTRY e { a = f32[5,3] parameter(0)\n b = f32[3,4] parameter(1)\n ROOT r = f32[5,4] dot(a, b), "
         "lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
         false, nullptr, nullptr},
    Case{"scan-expander",
         "HloModule m\nf { x = f32[] parameter(0)\n c = f32[] parameter(1)\n s = f32[] add(x, c)\n ROOT t = (f32[], "
         "f32[]) "
         "tuple(s, s) }\nENTRY e { x = f32[4] parameter(0)\n z = f32[] parameter(1)\n ROOT r = (f32[4], f32[]) scan(x, "
         "z), "
         "to_apply=f, num_carries=1, scan_dimension=0 }",
         true, "while(", " scan("},
    Case{"scan-expander",
         "HloModule m\nc { s = (s32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] "
         "constant(3)\n ROOT "
         "l = pred[] compare(i, n), direction=LT }\nb { s = (s32[]) parameter(0)\n i = s32[] get-tuple-element(s), "
         "index=0\n o = s32[] constant(1)\n j = s32[] add(i, o)\n ROOT t = (s32[]) tuple(j) }\nENTRY e { x = (s32[]) "
         "parameter(0)\n ROOT w = (s32[]) while(x), condition=c, body=b }",
         false, nullptr, nullptr},
    Case{"stochastic-convert-decomposer",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n u = u32[4] parameter(1)\n ROOT r = s8[4] "
         "stochastic-convert(x, u) "
         "}",
         true, "compare", "stochastic-convert("},
    Case{"stochastic-convert-decomposer",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = s8[4] convert(x) }", false, nullptr, nullptr},
    Case{"triangular-solve-expander",
         "HloModule m\nENTRY e { a = c64[3,3] parameter(0)\n b = c64[3,2] parameter(1)\n ROOT r = c64[3,2] "
         "triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE }",
         true, "while(", "triangular-solve("},
    Case{"triangular-solve-expander",
         "HloModule m\nENTRY e { a = f32[3,3] parameter(0)\n b = f32[3,2] parameter(1)\n ROOT r = f32[3,2] "
         "triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE }",
         false, nullptr, nullptr},
    Case{"algsimp",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n o = f32[] constant(1)\n b = f32[4] broadcast(o), "
         "dimensions={}\n ROOT r = f32[4] multiply(x, b) }",
         true, "ROOT %x", nullptr},
    Case{"algsimp",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n o = f32[] constant(0)\n b = f32[4] broadcast(o), "
         "dimensions={}\n ROOT r = f32[4] add(x, b) }",
         false, "add(", nullptr},
    Case{"algsimp", "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] subtract(x, x) }", false,
         "subtract(", nullptr},
    Case{"algsimp",
         "HloModule m\nENTRY e { x = f32[2,3] parameter(0)\n t = f32[3,2] transpose(x), dimensions={1,0}\n ROOT r "
         "= f32[2,3] transpose(t), dimensions={1,0} }",
         true, "ROOT %x", nullptr},
    Case{"algsimp",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n o = f32[] constant(-inf)\n b = f32[4] broadcast(o), "
         "dimensions={}\n ROOT r = f32[4] maximum(b, x) }",
         true, "ROOT %x", nullptr},
    Case{"batchnorm-expander",
         "HloModule m\nENTRY e { x = f32[2,3] parameter(0)\n s = f32[3] parameter(1)\n ROOT r = f32[2,3] "
         "batch-norm-inference(x, s, s, s, s), epsilon=0.001, feature_index=1 }",
         true, "rsqrt(", "batch-norm"},
    Case{"batchnorm-expander", "HloModule m\nENTRY e { x = f32[2,3] parameter(0)\n ROOT r = f32[2,3] rsqrt(x) }", false,
         nullptr, nullptr},
    Case{"call-inliner",
         "HloModule m\nf { p = f32[2] parameter(0)\n ROOT n = f32[2] negate(p) }\nENTRY e { x = f32[2] "
         "parameter(0)\n ROOT c = f32[2] call(x), to_apply=f }",
         true, "negate(%x)", "call("},
    Case{"call-inliner",
         "HloModule m\nf { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT n = f32[] add(p, q) }\nENTRY e { "
         "x = f32[2] parameter(0)\n z = f32[] constant(0)\n ROOT c = f32[] reduce(x, z), dimensions={0}, "
         "to_apply=f }",
         false, nullptr, nullptr},
    Case{"conditional-simplifier",
         "HloModule m\na { p = f32[] parameter(0)\n ROOT r = f32[] negate(p) }\nb { ROOT p = f32[] parameter(0) "
         "}\nENTRY e { x = f32[] parameter(0)\n i = s32[] constant(7)\n ROOT c = f32[] conditional(i, x, x), "
         "branch_computations={a, b} }",
         true, "to_apply=%b", "conditional("},
    Case{"conditional-simplifier",
         "HloModule m\na { p = f32[] parameter(0)\n ROOT r = f32[] negate(p) }\nb { ROOT p = f32[] parameter(0) "
         "}\nENTRY e { x = f32[] parameter(0)\n i = s32[] parameter(1)\n ROOT c = f32[] conditional(i, x, x), "
         "branch_computations={a, b} }",
         false, nullptr, nullptr},
    Case{"constant-folding",
         "HloModule m\nENTRY e { a = f32[] constant(2)\n b = f32[] constant(3)\n ROOT r = f32[] add(a, b) }", true,
         "constant(5)", "add("},
    Case{"constant-folding",
         "HloModule m\nENTRY e { a = f32[] constant(2)\n ROOT r = f32[1000] broadcast(a), dimensions={} }", false,
         nullptr, nullptr},
    Case{"cse",
         "HloModule m\nENTRY e { x = f32[2] parameter(0)\n a = f32[2] sine(x)\n b = f32[2] sine(x)\n ROOT r = "
         "f32[2] add(a, b) }",
         true, "add(%a, %a)", nullptr},
    Case{"cse",
         "HloModule m\nENTRY e { x = f32[2] parameter(0)\n a = f32[2] slice(x), slice={[0:2]}\n b = f32[2] "
         "cosine(x)\n ROOT r = f32[2] add(a, b) }",
         false, nullptr, nullptr},
    Case{"dce", "HloModule m\nENTRY e { x = f32[2] parameter(0)\n a = f32[2] sine(x)\n ROOT r = f32[2] cosine(x) }",
         true, nullptr, "sine(%x)\n  ROOT"},
    Case{"dce",
         "HloModule m\nENTRY e { x = f32[2] parameter(0)\n a = f32[2] custom-call(x), custom_call_target=\"t\", "
         "custom_call_has_side_effect=true\n ROOT r = f32[2] cosine(x) }",
         false, "custom-call", nullptr},
    Case{"dot-decomposer",
         "HloModule m\nENTRY e { a = f32[2,3,4,5] parameter(0)\n b = f32[4,5,6] parameter(1)\n ROOT d = f32[2,3,6] "
         "dot(a, b), lhs_contracting_dims={2,3}, rhs_contracting_dims={0,1} }",
         true, "f32[1,6,6]", nullptr},
    Case{"dot-decomposer",
         "HloModule m\nENTRY e { a = f32[2,3,4] parameter(0)\n b = f32[2,4,5] parameter(1)\n ROOT d = f32[2,3,5] "
         "dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1} }",
         false, nullptr, nullptr},
    Case{"dynamic-index-splitter",
         "HloModule m\nENTRY e { x = f32[8,8] parameter(0)\n i = s32[2] parameter(1)\n ROOT d = f32[2,2] "
         "dynamic-slice(x, i), dynamic_slice_sizes={2,2} }",
         true, "reshape(", nullptr},
    Case{"dynamic-index-splitter",
         "HloModule m\nENTRY e { x = f32[8] parameter(0)\n i = s32[] parameter(1)\n ROOT d = f32[2] "
         "dynamic-slice(x, i), dynamic_slice_sizes={2} }",
         false, nullptr, nullptr},
    Case{"flatten-call-graph",
         "HloModule m\na { p = f32[] parameter(0)\n ROOT r = f32[] negate(p) }\nENTRY e { x = f32[] parameter(0)\n "
         "i = s32[] parameter(1)\n ROOT c = f32[] conditional(i, x, x), branch_computations={a, a} }",
         true, "clone", nullptr},
    Case{"flatten-call-graph",
         "HloModule m\nf { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT n = f32[] add(p, q) }\nENTRY e { "
         "x = f32[2] parameter(0)\n z = f32[] constant(0)\n c = f32[] reduce(x, z), dimensions={0}, to_apply=f\n d "
         "= f32[] reduce(x, z), dimensions={0}, to_apply=f\n ROOT s = f32[] add(c, d) }",
         false, nullptr, nullptr},
    Case{"fusion",
         "HloModule m\nENTRY e { x = f32[64] parameter(0)\n a = f32[64] exponential(x)\n ROOT r = f32[64] "
         "negate(a) }",
         true, "fusion(%x)", nullptr},
    Case{"fusion",
         "HloModule m\nENTRY e { x = f32[64] parameter(0)\n a = f32[64] exponential(x)\n b = f32[64] sine(a)\n c = "
         "f32[64] cosine(a)\n ROOT r = (f32[64], f32[64], f32[64]) tuple(a, b, c) }",
         false, nullptr, "fusion("},
    Case{"fusion",
         "HloModule m\nENTRY e { x = f32[16] parameter(0)\n a = f32[14] slice(x), slice={[0:14]}\n i = s32[] "
         "parameter(1)\n ROOT d = f32[16] dynamic-update-slice(x, a, i) }",
         false, nullptr, "fusion("},
    Case{"fusion-wrapper", "HloModule m\nENTRY e { x = f32[64] parameter(0)\n ROOT a = f32[64] exponential(x) }", true,
         "fusion(%x)", nullptr},
    Case{"fusion-wrapper",
         "HloModule m\nENTRY e { a = f32[1,3,4] parameter(0)\n ROOT d = f32[1,3,3] dot(a, a), lhs_batch_dims={0}, "
         "lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2} }",
         false, nullptr, nullptr},
    Case{"layout-assignment",
         "HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{1,0}}\nENTRY e { x = f32[2,3] "
         "parameter(0)\n ROOT n = f32[2,3] negate(x) }",
         true, "copy(%x)", nullptr},
    Case{"layout-assignment",
         "HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}\nENTRY e { x = f32[2,3]{1,0} "
         "parameter(0)\n ROOT n = f32[2,3]{1,0} negate(x) }",
         false, nullptr, "copy("},
    Case{"map-inline",
         "HloModule m\nf { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT n = f32[] add(p, q) }\nENTRY e { "
         "x = f32[4] parameter(0)\n ROOT r = f32[4] map(x, x), dimensions={0}, to_apply=f }",
         true, "add(%x, %x)", "map("},
    Case{"map-inline", "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] add(x, x) }", false, nullptr,
         nullptr},
    Case{"optimization-barrier-expander",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n b = f32[4] opt-barrier(x)\n ROOT r = f32[4] negate(b) }",
         true, "negate(%x)", "opt-barrier"},
    Case{"optimization-barrier-expander",
         "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] negate(x) }", false, nullptr, nullptr},
    Case{"reshape-decomposer",
         "HloModule m\nENTRY e { x = f32[6]{0} parameter(0)\n ROOT r = f32[2,3]{1,0} reshape(x) }", true, "bitcast(",
         "reshape("},
    Case{"reshape-decomposer",
         "HloModule m\nENTRY e { x = f32[2,3]{0,1} parameter(0)\n ROOT r = f32[6]{0} reshape(x) }", false, "reshape(",
         nullptr},
    Case{"transpose-folding",
         "HloModule m\nENTRY e { a = f32[4,2] parameter(0)\n b = f32[4,3] parameter(1)\n t = f32[2,4] transpose(a), "
         "dimensions={1,0}\n ROOT d = f32[2,3] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
         true, "dot(%a, %b), lhs_contracting_dims={0}", nullptr},
    Case{"transpose-folding",
         "HloModule m\nENTRY e { a = f32[2,3,4] parameter(0)\n b = f32[4] parameter(1)\n t = f32[3,2,4] "
         "transpose(a), dimensions={1,0,2}\n ROOT d = f32[3,2] dot(t, b), lhs_contracting_dims={2}, "
         "rhs_contracting_dims={0} }",
         false, "dot(%t", nullptr},
    Case{"tuple-simplifier",
         "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[3] parameter(1)\n t = (f32[2], f32[3]) tuple(x, "
         "y)\n ROOT g = f32[3] get-tuple-element(t), index=1 }",
         true, "ROOT %y", nullptr},
    Case{"tuple-simplifier",
         "HloModule m\nENTRY e { t = (f32[2], f32[3]) parameter(0)\n ROOT g = f32[3] get-tuple-element(t), index=1 "
         "}",
         false, nullptr, nullptr},
    Case{"convolution-canonicalization",
         "HloModule m\nENTRY e { x = f32[1,3,8,8] parameter(0)\n k = f32[4,3,3,3] parameter(1)\n ROOT c = "
         "f32[1,4,6,6] convolution(x, k), window={size=3x3}, dim_labels=bf01_oi01->bf01 }",
         true, "dim_labels=b01f_01io->b01f", nullptr},
    Case{"convolution-canonicalization",
         "HloModule m\nENTRY e { x = f32[1,8,8,3] parameter(0)\n k = f32[3,3,3,4] parameter(1)\n ROOT c = "
         "f32[1,6,6,4] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f }",
         false, nullptr, nullptr},
    Case{"zero-sized-hlo-elimination",
         "HloModule m\nENTRY e { x = f32[0,3] parameter(0)\n ROOT r = f32[0,3] add(x, x) }", true, "constant({})",
         "add("},
    Case{"zero-sized-hlo-elimination",
         "HloModule m\nENTRY e { x = f32[1,3] parameter(0)\n ROOT r = f32[1,3] add(x, x) }", false, nullptr, nullptr}};

INSTANTIATE_TEST_SUITE_P(Table, Passes, testing::ValuesIn(kCases), [](const auto& i) {
  std::string n = i.param.pass;
  for (char& ch : n)
    if (ch == '-') ch = '_';
  return n + "_" + std::to_string(i.index);
});

TEST(Table, EveryPassHasACaseThatFiresAndOneThatRefuses) {
  // The registry is walked, so that a new pass without both kinds of case fails here.
  for (const PassInfo& p : AllPasses()) {
    int fires = 0, refuses = 0;
    for (const Case& c : kCases)
      if (std::string(c.pass) == p.name) ++(c.fires ? fires : refuses);
    EXPECT_GE(fires, 1) << p.name;
    EXPECT_GE(refuses, 1) << p.name;
  }
}

TEST(Pipeline, AnOrderThatCannotHoldIsRefused) {
  auto m = ParseHlo("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", "t.hlo");
  Pipeline early("early", FindPass);
  early.Add("fusion").Add("layout-assignment");
  const absl::Status s = early.Run(**m, {});
  ASSERT_FALSE(s.ok());
  EXPECT_NE(std::string(s.message()).find("fusion needs LaidOut"), std::string::npos) << s.message();
  Pipeline late("late", FindPass);
  late.Add("layout-assignment").Add("fusion");
  EXPECT_TRUE(late.Run(**m, {}).ok());
}

TEST(Facts, EachCheckerRefuses) {
  auto core = ParseHlo(
      "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = s32[] get-dimension-size(x), dimensions={0} }",
      "t.hlo");
  EXPECT_EQ(CheckFacts(**core, fact::Core).code(), absl::StatusCode::kUnimplemented);
  auto bare = ParseHlo("HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] negate(x) }", "t.hlo");
  EXPECT_TRUE(CheckFacts(**bare, fact::Typed | fact::Core).ok());
  EXPECT_FALSE(CheckFacts(**bare, fact::LaidOut).ok());
  EXPECT_FALSE(CheckFacts(**bare, fact::Fused).ok());
}

TEST(Pipeline, UnknownPassesAreRefused) {
  auto m = ParseHlo("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", "t.hlo");
  PipelineOptions o;
  o.disabled = {"nonsense"};
  EXPECT_FALSE(CpuPipeline().Run(**m, o).ok());
  Pipeline p("p", FindPass);
  p.Add("nonsense");
  EXPECT_FALSE(p.Run(**m, {}).ok());
}

}  // namespace
}  // namespace kiln
