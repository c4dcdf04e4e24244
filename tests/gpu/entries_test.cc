// Several entries in one library for GPUs: both run, the library's code and weights are on the device once, and each
// has its own kernels, products and arena.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/eval/evaluator.h"
#include "tests/gpu/gpu_program.h"

namespace kiln {
namespace {

// Of both programs: the table of words, which is a constant of each.
constexpr char kTable[] = "f32[4,4] constant({{0,-1,2,-1},{1,-0.5,0,2},{-0.5,-2,-2,-2},{0.5,2,1,2}})";
constexpr char kPrefill[] = R"(HloModule prefill
ENTRY e {
  words = f32[3,4] parameter(0)
  table = $TABLE
  ROOT state = f32[3,4] dot(words, table), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";
constexpr char kDecode[] = R"(HloModule decode
ENTRY e {
  word = f32[4,4] parameter(0)
  state = f32[4,4] parameter(1)
  table = $TABLE
  a = f32[4,4] multiply(word, table)
  b = f32[4,4] add(a, state)
  ROOT s = f32[4,4] sort(b), dimensions={1}, to_apply=less
}
less { p = f32[] parameter(0) q = f32[] parameter(1) ROOT l = pred[] compare(p, q), direction=LT })";

std::string TextOf(const char* program) { return absl::StrReplaceAll(program, {{"$TABLE", kTable}}); }

EntryPrograms EntryOf(const std::string& name, const char* program) {
  auto module = ParseHlo(TextOf(program), name + ".hlo");
  EXPECT_TRUE(module.ok()) << module.status();
  EntryPrograms out;
  out.name = name;
  out.variants.push_back({0, std::move(*module)});
  return out;
}

CompiledModel CompileEntries(const CompileOptions& o) {
  std::vector<EntryPrograms> entries;
  entries.push_back(EntryOf("prefill", kPrefill));
  entries.push_back(EntryOf("decode", kDecode));
  auto model = Compile(std::move(entries), o);
  EXPECT_TRUE(model.ok()) << model.status();
  return std::move(*model);
}

// What an entry is as a program alone, whose kernels the emulator then has by their names in the library.
LoadedModel Emulated(const std::string& name, const char* program) {
  CompileOptions o = GpuOptions({"sm_90"});
  o.model.name = "m_" + name;
  o.gpu.emulation = GpuOptions::Emulation::kPlain;
  return LoadModel(CompileText(TextOf(program), o), "emulated_" + name);
}

class GpuEntriesTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = CompileEntries(GpuOptions({"sm_80", "sm_90"}));
    library_ = LoadModel(model_, absl::StrCat("entries", count_++));
    prefill_ = std::make_unique<EmulatedDevice>(Emulated("prefill", kPrefill).Emulated());
    decode_ = std::make_unique<EmulatedDevice>(Emulated("decode", kDecode).Emulated());
    // Every kernel by the emulator that has it. The driver's device is the later one.
    FakeCuda& fake = decode_->fake;
    of_ = {&prefill_->fake, fake};
    fake.self = &of_;
    fake.buffers_of = [](void* self, const char* kernel) {
      FakeCuda& f = static_cast<Both*>(self)->Of(kernel);
      return f.buffers_of(f.self, kernel);
    };
    fake.launch = [](void* self, const char* kernel, int64_t blocks, int64_t threads, void* const* buffers) {
      FakeCuda& f = static_cast<Both*>(self)->Of(kernel);
      return f.launch(f.self, kernel, blocks, threads, buffers);
    };
  }
  void TearDown() override { decode_.reset(), prefill_.reset(); }
  template <typename F>
  F* Find(const std::string& function) const {
    return reinterpret_cast<F*>(library_.Find(function));
  }
  kiln_model_gpu* Create(const std::string& entry) const {
    kiln_model_gpu* g = nullptr;
    char problem[1024] = "";
    const auto create = Find<decltype(kiln_model_gpu_create)>(entry + "_gpu_create");
    EXPECT_NE(create, nullptr) << entry;
    EXPECT_EQ(create(&g, 0, KILN_GPU_OWN_STREAM, problem, sizeof problem), 0) << problem;
    return g;
  }
  void Destroy(kiln_model_gpu* g) const { Find<decltype(kiln_model_gpu_destroy)>("gpu_destroy")(g); }
  // The result for arguments of small numbers is the evaluator's.
  void ExpectRight(kiln_model_gpu* g, const char* program) const {
    auto module = ParseHlo(TextOf(program), "m.hlo");
    ASSERT_TRUE(module.ok()) << module.status();
    std::vector<Literal> arguments;
    std::vector<const void*> in;
    for (const Instruction* p : (*module)->entry()->parameters()) {
      arguments.emplace_back(p->shape());
      for (int64_t k = 0; k < p->shape().ElementCount(); ++k) {
        Element e;
        e.re = static_cast<double>(k % 5) - static_cast<double>(arguments.size());
        arguments.back().Set(k, e);
      }
    }
    for (const Literal& a : arguments) in.push_back(a.data());
    auto want = Evaluate(**module, arguments);
    ASSERT_TRUE(want.ok()) << want.status();
    Literal got(want->shape());
    void* const out[] = {got.mutable_data()};
    EXPECT_EQ(Find<decltype(kiln_model_gpu_run_host)>("gpu_run_host")(g, in.data(), out), 0)
        << Find<decltype(kiln_model_gpu_error)>("gpu_error")(g);
    EXPECT_TRUE(got == *want) << got.ToString() << " instead of " << want->ToString();
  }
  int64_t Copies() const {
    const std::vector<std::string>& order = decode_->fake.order;
    return std::count_if(order.begin(), order.end(), [](const auto& what) { return what.rfind("to device", 0) == 0; });
  }

  struct Both {
    FakeCuda *prefill = nullptr, decode;
    FakeCuda& Of(const std::string& kernel) { return kernel.rfind("m_prefill_", 0) == 0 ? *prefill : decode; }
  };
  Both of_;
  CompiledModel model_;
  LoadedModel library_;
  std::unique_ptr<EmulatedDevice> prefill_, decode_;
  static inline int count_ = 0;
};

TEST_F(GpuEntriesTest, BothRunOnOneImageAndOneSetOfWeights) {
  FakeCuda& fake = decode_->fake;
  int loads = 0;
  fake.refuse_image = [&](bool, const void*) { return ++loads, 0; };
  kiln_model_gpu* prefill = Create("prefill");
  EXPECT_EQ(Copies(), 1);
  kiln_model_gpu* decode = Create("decode");
  kiln_model_gpu* again = Create("decode");
  EXPECT_EQ(Copies(), 1);
  EXPECT_EQ(loads, 1);
  for (int run = 0; run < 3; ++run) {
    ExpectRight(prefill, kPrefill);
    ExpectRight(decode, kDecode);
    ExpectRight(again, kDecode);
  }
  // Whoever came first may go first.
  Destroy(prefill);
  ExpectRight(decode, kDecode);
  Destroy(again);
  ExpectRight(decode, kDecode);
  Destroy(decode);
  EXPECT_EQ(fake.live, 0);
  // From the beginning.
  prefill = Create("prefill");
  EXPECT_EQ(loads, 2);
  ExpectRight(prefill, kPrefill);
  Destroy(prefill);
  EXPECT_EQ(fake.live, 0);
}

TEST_F(GpuEntriesTest, WhatFailsLeavesNothingForTheOthers) {
  FakeCuda& fake = decode_->fake;
  const auto create = Find<decltype(kiln_model_gpu_create)>("decode_gpu_create");
  for (int k = 0; k < 60; ++k) {
    kiln_model_gpu* prefill = k % 2 ? Create("prefill") : nullptr;
    const int live = fake.live;
    kiln_model_gpu* g = nullptr;
    fake.calls = 0;
    fake.fail_call = k / 2;
    char problem[1024] = "";
    const int32_t status = create(&g, 0, KILN_GPU_OWN_STREAM, problem, sizeof problem);
    fake.fail_call = -1;
    EXPECT_EQ(status == 0, g != nullptr);
    EXPECT_EQ(status != 0, problem[0] != 0);
    if (g) Destroy(g);
    EXPECT_EQ(fake.live, live) << fake.failed;
    if (prefill) {
      ExpectRight(prefill, kPrefill);
      Destroy(prefill);
    }
    EXPECT_EQ(fake.live, 0) << fake.failed;
  }
}

TEST_F(GpuEntriesTest, SizesAreTheLargestEntrys) {
  ASSERT_EQ(model_.entries.size(), 2U);
  int64_t most = 0;
  for (const CompiledModel& e : model_.entries) most = std::max(most, e.report.gpu_temp_bytes);
  EXPECT_EQ(model_.report.gpu_temp_bytes, most);
  EXPECT_NE(model_.code.c_header.find(absl::StrCat("#define M_GPU_ARENA_BYTES ((size_t)", most, ")")),
            std::string::npos);
  // The table once.
  EXPECT_EQ(model_.report.constant_bytes, 64);
}

}  // namespace
}  // namespace kiln
