// The runtime's calls of cuBLASLt, over a library that computes by cuBLASLt's documentation: layouts, transpositions,
// batches, scales, epilogues, and the algorithm that tuning chose.
#include <random>

#include "aot/compile.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "tests/gpu/emulated_device.h"

namespace kiln {
namespace {

// The algorithm of the fake library's last product; -1 before the first.
int& LastAlgorithm() {
  void* const lt = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  auto* last = lt ? static_cast<int*>(dlsym(lt, "fake_cublaslt_last_algorithm")) : nullptr;
  EXPECT_NE(last, nullptr) << "this is not the fake library";
  return *last;
}

// Runs `text` through the runtime and compares with the evaluator; `model` must be another for each call.
void ExpectSame(const std::string& text, const std::string& model, CompileOptions o = {},
                const std::string& target = "sm_80") {
  auto module = ParseHlo(text, "m.hlo");
  ASSERT_TRUE(module.ok()) << module.status();
  std::mt19937 random(3);
  std::vector<Literal> arguments;
  for (const Instruction* p : (*module)->entry()->parameters()) {
    Literal v(p->shape());
    for (int64_t k = 0; k < p->shape().ElementCount(); ++k) {
      Element e;
      e.re = static_cast<double>(random() % 7) - 3;
      e.im = static_cast<double>(random() % 5) - 2;
      e.i = static_cast<int64_t>(e.re);
      v.Set(k, e);
    }
    arguments.push_back(std::move(v));
  }
  const auto want = Evaluate(**module, arguments);
  ASSERT_TRUE(want.ok()) << want.status();
  o.name = model;
  o.cpu_levels.clear();
  o.emulation = CompileOptions::Emulation::kPlain;
  o.gpu_targets = {target};
  auto emulated = Compile((*module)->Clone(), o);
  ASSERT_TRUE(emulated.ok()) << emulated.status();
  o.emulation = CompileOptions::Emulation::kNone;
  auto program = Compile(std::move(*module), o);
  ASSERT_TRUE(program.ok()) << program.status();
  const LoadedModel kernels = LoadModel(*emulated, model + "_emulated"), library = LoadModel(*program, model);
  EmulatedDevice device(kernels.Emulated());
  device.fake.major = target == "sm_80" ? 8 : 9;
  const auto find = [&](const char* function) { return library.Find(function); };
  const auto create = reinterpret_cast<int32_t (*)(void**, int32_t, void*, char*, size_t)>(find("gpu_create"));
  const auto run = reinterpret_cast<int32_t (*)(void*, const void* const*, void* const*)>(find("gpu_run_host"));
  const auto destroy = reinterpret_cast<void (*)(void*)>(find("gpu_destroy"));
  const auto error = reinterpret_cast<const char* (*)(const void*)>(find("gpu_error"));
  ASSERT_TRUE(create && run && destroy && error);
  void* gpu = nullptr;
  char problem[256] = "";
  ASSERT_EQ(create(&gpu, 0, nullptr, problem, sizeof problem), 0) << problem;
  std::vector<const void*> in;
  for (const Literal& a : arguments) in.push_back(a.data());
  Literal got(Shape::Array(want->type(), want->shape().dims()));
  void* out[] = {got.mutable_data()};
  LastAlgorithm() = -1;
  EXPECT_EQ(run(gpu, in.data(), out), 0) << error(gpu);
  EXPECT_NE(LastAlgorithm(), -1) << "the library was not called";
  EXPECT_TRUE(got == *want) << got.ToString() << " instead of " << want->ToString();
  destroy(gpu);
}

TEST(Cublas, LayoutsOfEveryType) {
  int n = 0;
  for (const auto& [in, out] :
       {std::pair{"f32", "f32"}, {"f64", "f64"}, {"bf16", "f32"}, {"f16", "f16"}, {"c64", "c64"}})
    for (int turned = 0; turned < 4; ++turned) {
      const char *a = turned & 1 ? "24,40" : "40,24", *b = turned & 2 ? "32,24" : "24,32";
      ExpectSame(absl::StrCat("HloModule m\nENTRY e {\n a = ", in, "[", a, "] parameter(0)\n b = ", in, "[", b,
                              "] parameter(1)\n ROOT d = ", out, "[40,32] dot(a, b), lhs_contracting_dims={",
                              turned & 1 ? 0 : 1, "}, rhs_contracting_dims={", turned & 2 ? 1 : 0, "}\n}\n"),
                 absl::StrCat("layouts", n++));
      EXPECT_EQ(LastAlgorithm(), 0);
    }
}

TEST(Cublas, Integers) {
  ExpectSame(R"(HloModule m
ENTRY e {
  a = s8[16,32] parameter(0)
  b = s8[24,32] parameter(1)
  ROOT d = s32[16,24] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}
})",
             "integers");
}

TEST(Cublas, BatchesAndABroadcastOperand) {
  ExpectSame(R"(HloModule m
ENTRY e {
  a = f32[3,16,24] parameter(0)
  b = f32[3,24,20] parameter(1)
  ROOT d = f32[3,16,20] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
})",
             "batches");
  ExpectSame(R"(HloModule m
ENTRY e {
  a = f32[3,16,24] parameter(0)
  w = f32[24,20] parameter(1)
  b = f32[3,24,20] broadcast(w), dimensions={1,2}
  ROOT d = f32[3,16,20] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
})",
             "broadcast");
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
})",
             "epilogues");
}

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
  n = f32[32,16] negate(c)
  ROOT r = f32[32,16] add(s, n)
})",
             "eight_bits", {}, "sm_90");
  ExpectSame(R"(HloModule m
ENTRY e {
  a = f8e4m3fn[2,16,32] parameter(0)
  b = f8e4m3fn[2,48,32] parameter(1)
  v = bf16[48] parameter(2)
  d = bf16[2,16,48] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  w = bf16[2,16,48] broadcast(v), dimensions={2}
  ROOT r = bf16[2,16,48] add(d, w)
})",
             "eight_bits_batched", {}, "sm_90");
}

TEST(Cublas, TheAlgorithmThatTuningChose) {
  constexpr char kText[] = R"(HloModule m
ENTRY e {
  a = f32[40,24] parameter(0)
  b = f32[24,32] parameter(1)
  ROOT d = f32[40,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";
  auto module = ParseHlo(kText, "m.hlo");
  ASSERT_TRUE(module.ok());
  CompileOptions o;
  o.name = "untuned";
  o.cpu_levels.clear();
  o.gpu_targets = {"sm_80"};
  const auto model = Compile(std::move(*module), o);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->untuned.size(), 1U);
  auto results = std::make_shared<TuningResults>();
  // The second of the library's three is not supported, so that the third is the second candidate.
  results->Add("sm_80", model->untuned[0].key, {1, 0, 1.0});
  CompileOptions tuned;
  tuned.tuning = results;
  ExpectSame(kText, "chosen", tuned);
  EXPECT_EQ(LastAlgorithm(), 2);
}

}  // namespace
}  // namespace kiln
