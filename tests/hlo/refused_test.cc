// What the verifier refuses, a line for each rule: one error with the place and the reason.
#include "compiler/hlo/inlined_size.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr char kFunctions[] = R"(add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
negated { n = f32[4] parameter(0)
  ROOT o = f32[4] negate(n) }
)";

struct Bad {
  const char* header;  // behind "HloModule m"
  const char* body;    // of the entry, behind x = f32[4,8], y = f32[4], t = (f32[4], f32[8]), tok
  const char* why;
};

class Refused : public testing::TestWithParam<Bad> {};

absl::Status Check(const Bad& b) {
  const std::string text =
      absl::StrCat("HloModule m", b.header, "\n", kFunctions,
                   "ENTRY e { x = f32[4,8] parameter(0)\n y = f32[4] parameter(1)\n t = (f32[4], f32[8]) parameter(2)\n"
                   " tok = token[] after-all()\n ",
                   b.body, " }\n");
  auto m = ParseHlo(text, "bad.hlo");
  return m.ok() ? VerifyAsWritten(**m) : m.status();
}

TEST_P(Refused, WithPlaceAndReason) {
  const absl::Status s = Check(GetParam());
  ASSERT_FALSE(s.ok()) << GetParam().body;
  const std::string text(s.message());
  EXPECT_NE(text.find(GetParam().why), std::string::npos) << text;
  EXPECT_EQ(text.rfind("bad.hlo:", 0), 0u) << text;
  EXPECT_NE(text.find(": error: "), std::string::npos) << text;
  EXPECT_EQ(text.find(":0:0:"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Attributes, Refused,
    testing::Values(
        Bad{"", "ROOT r = f32[4] negate(y), dimensions={1}", "negate r: has no attribute dimensions"},
        Bad{"", "ROOT r = f32[4] negate(y), to_apply=add", "has no attribute to_apply"},
        Bad{"", "ROOT r = f32[4] dot(y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            "takes 2 operands, not 1"},
        Bad{"", "ROOT r = token[4] parameter(3)", "a token has no extents"},
        Bad{"", "ROOT r = f32[4] all-reduce(y), channel_id=18446744073709551615, to_apply=add", "below 2^63"},
        Bad{"", "ROOT r = f8e4m3fn[8,4] reshape(x)", "make it f32[8,4]"},
        Bad{"", "ROOT r = s32[4] custom-call(y), custom_call_target=\"Sharding\", sharding={replicated}",
            "gives its operand back, which is f32[4]"},
        Bad{"", "ROOT r = f32[4] custom-call(y, y), custom_call_target=\"MoveToHost\"", "takes one operand, not 2"},
        Bad{"", "q = f32[<=4] parameter(3)\n ROOT r = (f32[<=6]) tuple(q)", "make it (f32[<=4])"},
        Bad{"",
            "h = bf16[4] parameter(3)\n k = s32[1] parameter(4)\n u = f32[1] parameter(5)\n ROOT r = f32[4] scatter(h, "
            "k, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
            "index_vector_dim=1, to_apply=add",
            "make it bf16[4]"},
        Bad{"", "ROOT r = f32[4] add(y, y), result_accuracy={mode=highest}", "has no attribute result_accuracy"},
        Bad{"", "ROOT r = f32[4] tanh(y), channel_id=1", "has no attribute channel_id"},
        Bad{"", "ROOT r = f32[4] parameter(3), is_stable=true", "has no attribute is_stable"},
        Bad{"", "ROOT r = f32[4,8] broadcast(y)", "attribute dimensions is missing"},
        Bad{"", "ROOT r = f32[8,4] transpose(x)", "attribute dimensions is missing"},
        Bad{"", "ROOT r = pred[4] compare(y, y)", "attribute direction is missing"},
        Bad{"", "ROOT r = pred[4] compare(y, y), direction=ALMOST", "'ALMOST' is none of EQ NE LT LE GT GE"},
        Bad{"", "ROOT r = pred[4] compare(y, y), direction=LT, type=SIGNED", "compares f32 as SIGNED"},
        Bad{"", "ROOT r = f32[4] reduce-precision(y), exponent_bits=0, mantissa_bits=3",
            "exponent_bits is 0, less than 1"},
        Bad{"", "ROOT r = f32[4] custom-call(y), custom_call_target=\"\"", "custom_call_target is empty"},
        Bad{"", "ROOT r = f32[4] custom-call(y), custom_call_target=\"f\", api_version=MINE",
            "'MINE' is none of API_VERSION_ORIGINAL"},
        Bad{"", "ROOT r = f32[4] custom-call(y), custom_call_target=\"f\", output_to_operand_aliasing={{}: (1, {})}",
            "names operand 1 of 1"},
        Bad{"", "ROOT r = f32[4] custom-call(t), custom_call_target=\"f\", output_to_operand_aliasing={{}: (0, {1})}",
            "joins f32[8] and f32[4]"},
        Bad{", color=red", "ROOT r = f32[4] negate(y)", "unknown attribute 'color' of the module"},
        Bad{", is_scheduled=true, is_scheduled=true", "ROOT r = f32[4] negate(y)", "is given twice"}));

INSTANTIATE_TEST_SUITE_P(
    Shardings, Refused,
    testing::Values(
        Bad{"", "ROOT r = f32[4] negate(y), sharding={foo}", "has no kind 'foo'"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[1]0}", "has one tile"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[2,1]0,1}", "has 2 tile dimensions for rank 1"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[2]0,0}", "names device 0 twice"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[2]0,1,2}", "has 2 tiles, but 3 devices"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[2]0,-1}", "names device -1"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[0]0}", "cuts a dimension into 0 parts"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[2]<=[3]}", "has 2 tiles, but 3 devices"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[4]<=[2,2]T(1,1)}", "not a permutation"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[2,2]<=[4] last_tile_dims={foo}}",
            "has a tile dimension of kind 'foo'"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={devices=[2]0,1 junk}", "has text that is not understood"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={maximal}", "names no device"},
        Bad{"", "ROOT r = f32[4] negate(y), sharding={{replicated}}", "lists shardings for one array"},
        Bad{"", "ROOT r = (f32[4], f32[4]) tuple(y, y), sharding={{replicated}}", "lists 1 shardings for 2 arrays"},
        Bad{"", "ROOT r = (f32[4], f32[4]) tuple(y, y), sharding={{replicated}, {manual}, {manual}}",
            "lists more than the 2 arrays"},
        Bad{", num_partitions=2", "ROOT r = f32[4] negate(y), sharding={devices=[2]0,2}", "names device 2 of 2"},
        Bad{", num_partitions=2", "ROOT r = f32[4] negate(y), sharding={maximal device=7}", "names device 7 of 2"}));

INSTANTIATE_TEST_SUITE_P(
    Asynchronous, Refused,
    testing::Values(
        Bad{"", "s = ((), f32[4], s32[]) async-start(), calls=negated\n ROOT d = f32[4] async-done(s)",
            "computation negated takes 1 operands, not 0"},
        Bad{"", "s = ((f32[8]), f32[4], s32[]) async-start(y), calls=negated\n ROOT d = f32[4] async-done(s)",
            "shape is ((f32[8]), f32[4], s32[])"},
        Bad{"",
            "s = ((f32[4]), f32[4], s32[]) async-start(y), calls=negated\n g = f32[4] get-tuple-element(s), index=1\n"
            " ROOT d = f32[4] async-done(s)",
            "has more than one user"},
        Bad{"", "s = ((f32[4]), f32[4], s32[]) async-start(y), calls=negated\n ROOT d = f32[8] async-done(s)",
            "its operands and attributes make it f32[4]"},
        Bad{"", "s = (f32[4], f32[4]) all-gather-start(y), dimensions={0}\n ROOT d = f32[4] all-reduce-done(s)",
            "is used by all-reduce-done, not by all-gather-done"},
        Bad{"", "s = (f32[4], f32[4], u32[]) copy-start(y)\n ROOT d = f32[4] async-done(s)", "is used by async-done"},
        Bad{"", "s = (f32[4], f32[4], u32[]) copy-start(y)\n ROOT d = (f32[4], f32[4], u32[]) tuple(y, y, s)",
            "is used by tuple, not by copy-done"},
        Bad{"", "ROOT d = f32[4] copy-done(t)", "operand is no copy-start"},
        Bad{"",
            "s = ((f32[4], f32[4]), f32[4]) collective-permute-start(y, y), source_target_pairs={{0,1}}\n"
            " ROOT d = f32[4] collective-permute-done(s)",
            "make it ((f32[4], f32[4]), (f32[4], f32[4]))"},
        Bad{"", "s = (f32[4], u32[], token[]) send(y, tok), channel_id=1\n ROOT d = token[] send-done(s), channel_id=2",
            "channel_id is not that of s"}));

INSTANTIATE_TEST_SUITE_P(
    Collectives, Refused,
    testing::Values(
        Bad{"", "ROOT g = f32[8] all-gather(y), dimensions={0}, replica_groups={{0,1,2,3}}",
            "extent 4 becomes 8, but its groups have 4 devices"},
        Bad{", replica_count=4", "ROOT g = f32[8] all-gather(y), dimensions={0}, replica_groups={}", "have 4 devices"},
        Bad{"", "ROOT g = f32[2] reduce-scatter(y), dimensions={0}, replica_groups={{0,1,2,3}}, to_apply=add",
            "have 4 devices"},
        Bad{"", "ROOT g = f32[4] all-to-all(y), dimensions={0}, replica_groups={{0,1,2}}",
            "does not divide into 3 parts"},
        Bad{"", "ROOT g = (f32[4], f32[4]) all-to-all(y, y), replica_groups={{0,1,2}}", "takes 2 operands"},
        Bad{"", "ROOT g = f32[8] all-gather(y), dimensions={0}, replica_groups={{0,1},{2}}", "have 2 and 1 members"},
        Bad{"", "ROOT g = f32[4] all-reduce(y), replica_groups={{0,2}}, to_apply=add", "id 1 is in no replica group"},
        Bad{"", "ROOT g = f32[4] all-reduce(y), replica_groups={{0,-1}}, to_apply=add", "member -1 is no id"},
        Bad{", replica_count=4", "ROOT g = f32[4] all-reduce(y), replica_groups={{0,1}}, to_apply=add",
            "have 2 members, but there are 4"},
        Bad{"", "ROOT g = f32[4] all-reduce(y), channel_id=1, use_global_device_ids=true, to_apply=add",
            "needs replica_groups"},
        Bad{", replica_count=2", "ROOT g = f32[4] collective-permute(y), source_target_pairs={{0,2}}",
            "id 2 is out of range"},
        Bad{"", "ROOT g = f32[4] collective-permute(y), source_target_pairs={{0,1},{2}}", "are not pairs"},
        Bad{"",
            "z = s32[] constant(0)\n s = (s32[]) tuple(z)\n"
            " ROOT g = f32[4] collective-permute(y, y, s, s), source_target_pairs={{0,1}}, slice_sizes={{2}}",
            "collective-permute of slices is not supported"},
        Bad{"",
            "c = f32[4] all-reduce(y), to_apply=add, constrain_layout=true\n ROOT g = f32[4] all-reduce(c), "
            "to_apply=add",
            "constrain_layout is not that of c"}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, Refused,
    testing::Values(
        Bad{"", "ROOT b = f32[100000] bitcast(y)", "take different amounts of memory"},
        Bad{"", "q = s4[16] parameter(3)\n ROOT b = s8[8] bitcast(q)", "elements smaller than a byte are not packed"},
        Bad{"",
            "z = f32[] constant(0)\n ROOT r = f32[4] reduce-window(y, z), "
            "window={size=3 rhs_dilate=4847562048910917633}, to_apply=add",
            "window or padding of dimension 0 is too large"},
        Bad{"",
            "z = f32[] constant(0)\n ROOT r = f32[4] reduce-window(y, z), "
            "window={size=1 pad=9223372036854775807_9223372036854775807}, to_apply=add",
            "window or padding of dimension 0 is too large"},
        Bad{"",
            "a = f32[1,4,1] reshape(y)\n k = f32[1,1,1] constant({{{1}}})\n ROOT r = f32[1,4,1] convolution(a, k), "
            "window={size=1 lhs_dilate=4847562048910917633}, dim_labels=b0f_0io->b0f",
            "window or padding of spatial dimension 0 is too large"},
        Bad{"", "ROOT z = f32[2,0] constant({{1}, {}})", "an array without elements holds nothing but braces"},
        Bad{"", "ROOT z = f32[2,0] constant(one)", "expected a number"},
        Bad{"", "ROOT \"\" = f32[] constant(1)", "a name is empty"},
        Bad{"", "z = f32[8] constant({1,2,3,4,5,6,7,8})\n ROOT r = f32[4] add(y, z)", "operand shapes differ"},
        Bad{"", "ROOT r = f32[4] add(f32[5] y, y)", "operand 'y' is f32[4], not f32[5]"},
        Bad{"", "ROOT r = convert(y)", "needs a shape"}, Bad{"", "ROOT r = reshape(x)", "needs a shape"},
        Bad{"", "ROOT r = f32[4,8] reshape(y)", "element counts differ"},
        Bad{"", "ROOT r = c64[4] fft(y), fft_type=FFT, fft_length={4}", "FFT takes complex numbers"},
        Bad{"", "ROOT r = c64[4] fft(y), fft_type=RFFT, fft_length={4}", "make it c64[3]"},
        Bad{"",
            "p = c64[2000000011] parameter(3)\n ROOT r = c64[2000000011] fft(p), fft_type=FFT, fft_length={2000000011}",
            "is more than 134217728"},
        Bad{"", "ROOT r = f32[4,4] cholesky(x)", "takes square matrices"},
        Bad{"", "i = f32[] constant(0)\n ROOT r = f32[1] dynamic-slice(y, i), dynamic_slice_sizes={1}",
            "start index is f32[], not an integer"},
        Bad{"", "ROOT r = f32[0] pad(y, s), padding=-3_-3", "operand 's' is not defined"},
        Bad{"", "z = f32[] constant(0)\n ROOT r = f32[0] pad(y, z), padding=-3_-3",
            "leaves dimension 0 a negative extent"},
        Bad{"", "z = f32[] constant(0)\n ROOT r = f32[4] pad(y, z), padding=4_9223372036854775807",
            "more elements than can be counted"},
        Bad{"", "z = s32[] constant(0)\n ROOT r = f32[] reduce(y, z), dimensions={0}, to_apply=add",
            "initial value is s32"},
        Bad{"", "h = bf16[4] parameter(3)\n ROOT r = (f32[4], f32[4]) tuple(y, h)", "make it (f32[4], bf16[4])"},
        Bad{"", "h = bf16[4] parameter(3)\n ROOT r = bf16[4] call(h), to_apply=negated", "operand 0 is bf16[4]"}));

INSTANTIATE_TEST_SUITE_P(
    Header, Refused,
    testing::Values(
        Bad{", replica_count=2000000000", "ROOT r = f32[4] negate(y)", "replica_count is 2000000000, not 1 to 4096"},
        Bad{", num_partitions=0", "ROOT r = f32[4] negate(y)", "num_partitions is 0"},
        Bad{", replica_count=4096, num_partitions=2", "ROOT r = f32[4] negate(y)", "more than 4096 devices"},
        Bad{", buffer_donor={ (1, {}), (1, {}) }", "ROOT r = f32[4] negate(y)", "names parameter 1{} twice"},
        Bad{", buffer_donor={ (9, {}) }", "ROOT r = f32[4] negate(y)", "names parameter 9 of 3"},
        Bad{", buffer_donor={ (2, {4}) }", "ROOT r = f32[4] negate(y)", "that does not exist"},
        Bad{", input_output_alias={ {}: (1, {}, may-alias) }, buffer_donor={ (1, {}) }", "ROOT r = f32[4] negate(y)",
            "has an alias already"},
        Bad{", input_output_alias={ {}: (1, {}, may-alias), {}: (2, {0}, may-alias) }", "ROOT r = f32[4] negate(y)",
            "uses result {} twice"}));

TEST(Cycles, OfCallsNameTheCaller) {
  auto m = ParseHlo(
      "HloModule m\nf { p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=g }\n"
      "g { q = f32[] parameter(0)\n ROOT s = f32[] call(q), to_apply=f }\n"
      "ENTRY e { x = f32[] parameter(0)\n ROOT y = f32[] call(x), to_apply=f }",
      "cycle.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  const std::string text(VerifyModule(**m).message());
  EXPECT_EQ(text.rfind("cycle.hlo:5:", 0), 0u) << text;
  EXPECT_NE(text.find("computation f calls itself"), std::string::npos) << text;
}

TEST(Names, AreNotRepeated) {
  auto m = ParseHlo("HloModule m\nENTRY e { x = f32[4] parameter(0)\n add = f32[5] add(x, x) }", "n.hlo");
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(std::string(VerifyModule(**m).message()).rfind("n.hlo:3:15: error: add: shape is", 0), 0u)
      << VerifyModule(**m);
}

TEST(Depth, OfCallsIsBounded) {
  std::string text = "HloModule m\nf0 { p0 = f32[] parameter(0) }\n";
  for (int k = 1; k < 3000; ++k)
    absl::StrAppend(&text, "f", k, " { p", k, " = f32[] parameter(0)\n ROOT r", k, " = f32[] call(p", k,
                    "), to_apply=f", k - 1, " }\n");
  auto m = ParseHlo(text, "deep.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  const absl::Status s = VerifyModule(**m);
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted) << s;
}

TEST(Header, ErrorsNameTheirKey) {
  auto m = ParseHlo("HloModule m,\n  buffer_donor={ (9, {}) }\nENTRY e { ROOT x = f32[4] parameter(0) }", "bad.hlo");
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(VerifyAsWritten(**m).message(), "bad.hlo:2:3: error: buffer_donor: names parameter 9 of 1");
}

struct Bound {
  int64_t Limits::*limit;
  int64_t most;
  const char* text;
  const char* why;
};

class Limited : public testing::TestWithParam<Bound> {};

TEST_P(Limited, OneErrorBeyond) {
  const Bound& b = GetParam();
  const auto check = [&](int64_t most) -> absl::Status {
    Limits limits;
    limits.*b.limit = most;
    auto m = ParseHlo(b.text, "bad.hlo", limits);
    if (!m.ok()) return m.status();
    absl::Status s = VerifyAsWritten(**m);
    s.Update(CheckInlinedSize(**m));
    return s;
  };
  EXPECT_NE(check(b.most - 1).message().find(b.why), std::string::npos) << check(b.most - 1);
  EXPECT_EQ(check(b.most - 1).message().rfind("bad.hlo:", 0), 0u) << check(b.most - 1);
  EXPECT_TRUE(check(b.most).ok()) << check(b.most);
}

constexpr char kCalls[] = R"(c { p = f32[] parameter(0)
  a = f32[] negate(p)
  b = f32[] negate(a)
  ROOT q = f32[] negate(b) }
b { p = f32[] parameter(0)
  a = f32[] call(p), to_apply=c
  d = f32[] call(a), to_apply=c
  e = f32[] call(d), to_apply=c
  f = f32[] call(e), to_apply=c
  g = f32[] call(f), to_apply=c
  ROOT q = f32[] call(g), to_apply=c }
ENTRY e { p = f32[] parameter(0)
  a = f32[] call(p), to_apply=b
  ROOT q = f32[] call(a), to_apply=b })";

INSTANTIATE_TEST_SUITE_P(
    Each, Limited,
    testing::Values(Bound{&Limits::elements, 32, "ENTRY e { ROOT x = f32[4,8] parameter(0) }", "more than 31 elements"},
                    Bound{&Limits::instructions, 3,
                          "ENTRY e { x = f32[] parameter(0)\n y = f32[] negate(x)\n ROOT z = f32[] negate(y) }",
                          "more than 2 instructions"},
                    Bound{&Limits::inlined_instructions, 65, kCalls, "more than 64 instructions once"},
                    Bound{&Limits::call_depth, 3, kCalls, "calls nest deeper than 2"},
                    Bound{&Limits::nesting, 2, "ENTRY e { ROOT x = ((f32[])) parameter(0) }",
                          "tuples nest deeper than 1"},
                    Bound{&Limits::interface_arrays, 2, "ENTRY e { ROOT x = (f32[], f32[]) parameter(0) }",
                          "takes 2 arrays, more than 1"},
                    Bound{&Limits::devices, 8, "HloModule m, replica_count=8\nENTRY e { ROOT x = f32[] parameter(0) }",
                          "replica_count is 8, not 1 to 7"},
                    Bound{&Limits::fft_length, 4,
                          "ENTRY e { x = c64[4] parameter(0)\n ROOT y = c64[4] fft(x), fft_type=FFT, fft_length={4} }",
                          "fft_length 4 is more than 3"}));

}  // namespace
}  // namespace kiln
