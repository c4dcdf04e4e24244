// Products of a GPU program, over a library that computes by cuBLASLt's documentation and over none: layouts,
// transpositions, batches, scales and epilogues, by the library and by kiln's own kernels.
#include "absl/strings/str_replace.h"
#include "tests/gpu/products.h"

namespace kiln {
namespace {

// Runs `text` on `target` with the library and without it, and compares with the evaluator.
void ExpectSame(const std::string& text, const std::string& target = "sm_80") {
  const Products p(text, GpuOptions({target}, true));
  p.ExpectRight("products: 1 by cuBLASLt");
  EXPECT_GE(Library().last_algorithm, 0) << "the library was not called";
  const ScopedVariable nowhere("KILN_CUBLASLT", "/nowhere");
  p.ExpectRight("products: 1 by kiln's own kernels (cuBLASLt cannot be opened where KILN_CUBLASLT names it");
}

TEST(Cublas, LayoutsOfEveryType) {
  for (const auto& [in, out] :
       {std::pair{"f32", "f32"}, {"f64", "f64"}, {"bf16", "f32"}, {"f16", "f16"}, {"c64", "c64"}})
    for (int turned = 0; turned < 4; ++turned) {
      const char *a = turned & 1 ? "24,40" : "40,24", *b = turned & 2 ? "32,24" : "24,32";
      ExpectSame(absl::StrCat("HloModule m\nENTRY e {\n a = ", in, "[", a, "] parameter(0)\n b = ", in, "[", b,
                              "] parameter(1)\n ROOT d = ", out, "[40,32] dot(a, b), lhs_contracting_dims={",
                              turned & 1 ? 0 : 1, "}, rhs_contracting_dims={", turned & 2 ? 1 : 0, "}\n}\n"),
                 "sm_80");
    }
}

TEST(Cublas, Integers) {
  ExpectSame(R"(HloModule m
ENTRY e {
  a = s8[16,32] parameter(0)
  b = s8[24,32] parameter(1)
  ROOT d = s32[16,24] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}
})");
}

TEST(Cublas, BatchesAndABroadcastOperand) {
  ExpectSame(R"(HloModule m
ENTRY e {
  a = f32[3,16,24] parameter(0)
  b = f32[3,24,20] parameter(1)
  ROOT d = f32[3,16,20] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
})");
  ExpectSame(R"(HloModule m
ENTRY e {
  a = f32[3,16,24] parameter(0)
  w = f32[24,20] parameter(1)
  b = f32[3,24,20] broadcast(w), dimensions={1,2}
  ROOT d = f32[3,16,20] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
})");
}

TEST(Cublas, ScalesAndEpilogues) {
  ExpectSame(R"(HloModule m
ENTRY e {
  a = f32[16,24] parameter(0)
  b = f32[24,20] parameter(1)
  c = f32[16,20] parameter(2)
  bias = f32[20] parameter(3)
  two = f32[] constant(2)
  zero = f32[] constant(0)
  d = f32[16,20] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[16,20] broadcast(two), dimensions={}
  s = f32[16,20] multiply(d, t)
  e = f32[16,20] add(s, c)
  f = f32[16,20] broadcast(bias), dimensions={1}
  g = f32[16,20] add(e, f)
  z = f32[16,20] broadcast(zero), dimensions={}
  ROOT r = f32[16,20] maximum(g, z)
})");
}

// In three dimensions, where all of it becomes a part of the call.
TEST(Cublas, ScalesAndEpiloguesInTheCall) {
  for (const char* type : {"f32", "bf16", "f16"})
    ExpectSame(absl::StrReplaceAll(R"(HloModule m
ENTRY e {
  a = T[2,16,24] parameter(0)
  b = T[2,20,24] parameter(1)
  c = T[2,16,20] parameter(2)
  bias = T[20] parameter(3)
  two = T[] constant(2)
  zero = T[] constant(0)
  d = T[2,16,20] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  t = T[2,16,20] broadcast(two), dimensions={}
  s = T[2,16,20] multiply(d, t)
  n = T[2,16,20] negate(c)
  e = T[2,16,20] add(s, n)
  f = T[2,16,20] broadcast(bias), dimensions={2}
  g = T[2,16,20] add(e, f)
  z = T[2,16,20] broadcast(zero), dimensions={}
  ROOT r = T[2,16,20] maximum(g, z)
})",
                                   {{"T[", absl::StrCat(type, "[")}}));
}

// Scaled is what the library has summed, so that a zero may have the other sign: none is left behind the last sum.
TEST(Cublas, ScaledEightBitFloats) {
  ExpectSame(R"(HloModule m
ENTRY e {
  a = f8e4m3fn[32,48] parameter(0)
  b = f8e5m2[48,16] parameter(1)
  sa = f32[] parameter(2)
  sb = f32[] parameter(3)
  c = f32[32,16] parameter(4)
  wa = f32[32,48] convert(a)
  ba = f32[32,48] broadcast(sa), dimensions={}
  xa = f32[32,48] multiply(wa, ba)
  wb = f32[48,16] convert(b)
  d = f32[32,16] dot(xa, wb), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[32,16] broadcast(sb), dimensions={}
  s = f32[32,16] multiply(d, bb)
  n = f32[32,16] add(c, c)
  ROOT r = f32[32,16] add(s, n)
})",
             "sm_90");
  ExpectSame(R"(HloModule m
ENTRY e {
  a = f8e4m3fn[2,16,32] parameter(0)
  b = f8e4m3fn[2,48,32] parameter(1)
  v = bf16[48] parameter(2)
  d = bf16[2,16,48] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  w = bf16[2,16,48] broadcast(v), dimensions={2}
  ROOT r = bf16[2,16,48] add(d, w)
})",
             "sm_90");
}

// What the library has no algorithm for, kiln's own kernel computes: here epilogues of f64.
TEST(Cublas, WhatTheLibraryDoesNotHave) {
  const Products p(R"(HloModule m
ENTRY e {
  a = f64[2,16,24] parameter(0)
  b = f64[2,24,20] parameter(1)
  bias = f64[20] parameter(2)
  zero = f64[] constant(0)
  d = f64[2,16,20] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  f = f64[2,16,20] broadcast(bias), dimensions={2}
  g = f64[2,16,20] add(d, f)
  z = f64[2,16,20] broadcast(zero), dimensions={}
  ROOT r = f64[2,16,20] maximum(g, z)
})",
                   GpuOptions({"sm_80"}, true));
  p.ExpectRight("products: 0 by cuBLASLt, 1 by kiln's own kernels (cuBLASLt has no way to multiply 16 x 24 by 24 x 20");
}

// TF32 is for products of f32 alone, where the config allows it and the program asks for no more than the default.
TEST(Cublas, Tf32) {
  constexpr int kFull = 68, kTf32 = 77, kDouble = 70;
  const auto expect = [](const std::string& type, const std::string& precision, bool allowed, int compute) {
    CompileOptions o = GpuOptions({"sm_80"}, true);
    o.gpu.tf32 = allowed;
    const Products p(
        absl::StrCat("HloModule m\nENTRY e {\n a = ", type, "[40,24] parameter(0)\n b = ", type,
                     "[24,32] parameter(1)\n ROOT d = ", type,
                     "[40,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", precision, "\n}\n"),
        o);
    p.ExpectRight("products: 1 by cuBLASLt");
    EXPECT_EQ(Library().last_compute, compute) << type << precision << (allowed ? ", allowed" : "");
  };
  expect("f32", "", true, kTf32);
  expect("f32", ", operand_precision={default,default}", true, kTf32);
  expect("f32", ", operand_precision={highest,highest}", true, kFull);
  expect("f32", ", operand_precision={default,high}", true, kFull);
  expect("f32", "", false, kFull);
  expect("f64", "", true, kDouble);
}

}  // namespace
}  // namespace kiln
