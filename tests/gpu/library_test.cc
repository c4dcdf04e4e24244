// The library of products as machines have it: where it is found, versions that differ, algorithms that tuning chose,
// answers that are not HLO's, addresses, and failures.
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "aot/tuning/results.h"
#include "compiler/base/text.h"
#include "tests/gpu/products.h"

// Where the library is looked for, in a copy of the runtime's own file that opens files by this (BUILD): what the
// machine has by its name, or where toolkits are, does not count.
static std::string opened;
extern "C" void* open_for_test(const char* file, int mode) {
  if (!std::strchr(file, '/') || std::strncmp(file, "/usr/", 5) == 0) return nullptr;
  opened = file;
  return dlopen(file, mode);
}
extern "C" void* kiln_model_gpu_open_cublaslt(char* error, size_t error_bytes);

namespace kiln {
namespace {

constexpr char kProduct[] = R"(HloModule m
ENTRY e {
  a = f32[40,24] parameter(0)
  b = f32[24,32] parameter(1)
  ROOT d = f32[40,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";
constexpr char kRelu[] = R"(HloModule m
ENTRY e {
  a = f32[2,40,24] parameter(0)
  b = f32[2,24,32] parameter(1)
  d = f32[2,40,32] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  z = f32[] constant(0)
  zb = f32[2,40,32] broadcast(z), dimensions={}
  ROOT m = f32[2,40,32] maximum(d, zb)
})";
constexpr char kOnLibrary[] = "products: 1 by cuBLASLt";

const Products& Product() {
  static const auto* p = new Products(kProduct, GpuOptions({"sm_80"}, true));
  return *p;
}

class LibraryTest : public testing::Test {
 protected:
  void SetUp() override { lt = FakeCublasLt(); }
  void TearDown() override { lt = FakeCublasLt(); }
  FakeCublasLt& lt = Library();
};

// The key of the one product of kProduct.
std::string Key() {
  const CompiledModel model = CompileText(kProduct, GpuOptions({"sm_80"}, true));
  EXPECT_EQ(model.report.untuned.size(), 1U);
  return model.report.untuned.empty() ? "" : model.report.untuned[0].key;
}

// Options with the result that algorithm `number` of the fake library's version 130000 was the fastest.
CompileOptions Tuned(uint64_t number, const std::string& file) {
  CompileOptions o = GpuOptions({"sm_80"}, true);
  const uint64_t words[8] = {0x6b696c6e, number, 130000, 16, 1024, 0, 0, 0};
  std::string digits;
  for (const uint64_t w : words) absl::StrAppend(&digits, absl::Hex(w, absl::kZeroPad16));
  EXPECT_TRUE(WriteFile(file, absl::StrCat("devices { target: \"sm_80\" entries { key: \"", Key(),
                                           "\" candidates { algorithm: 7 microseconds: 1 library_version: 130000 "
                                           "library_algorithm: \"",
                                           digits, "\" } } }"))
                  .ok());
  auto tuning = LoadTuning({file}, "", nullptr, &o.gpu.tuning.algorithms);
  EXPECT_TRUE(tuning.ok()) << tuning.status();
  o.gpu.tuning.results = *tuning;
  return o;
}

std::string Temporary(const std::string& name) { return std::string(std::getenv("TEST_TMPDIR")) + "/" + name; }

TEST_F(LibraryTest, IsFoundWhereInstallersPutIt) {
  const std::string from = std::getenv("KILN_CUBLASLT");
  const ScopedVariable unset("KILN_CUBLASLT", nullptr), no_toolkit("CUDA_HOME", nullptr), none("CUDA_PATH", nullptr);
  const auto open = [](char* error, size_t bytes) { return kiln_model_gpu_open_cublaslt(error, bytes); };
  char error[512] = "";
  EXPECT_EQ(open(error, sizeof error), nullptr);
  EXPECT_NE(std::string(error).find("is neither on the loader's path nor under CUDA_PATH, CUDA_HOME"),
            std::string::npos)
      << error;
  int n = 0;
  const auto found = [&](const char* variable, const std::string& below, const std::string& file) {
    const std::string root = Temporary(absl::StrCat("toolkit", n++)), dir = root + below;
    for (size_t at = root.size(); at != dir.npos; at = dir.find('/', at + 1)) mkdir(dir.substr(0, at).c_str(), 0777);
    mkdir(dir.c_str(), 0777);
    std::ofstream(dir + "/" + file, std::ios::binary) << std::ifstream(from, std::ios::binary).rdbuf();
    const ScopedVariable set(variable, root.c_str());
    opened.clear();
    EXPECT_NE(open(error, sizeof error), nullptr) << error;
    EXPECT_EQ(opened, dir + "/" + file);
  };
  found("CUDA_HOME", "/lib64", "libcublasLt.so.12");
  found("CUDA_PATH", "/lib64", "libcublasLt.so");
  found("CONDA_PREFIX", "/lib", "libcublasLt.so.12");
  found("VIRTUAL_ENV", "/lib/python3.11/site-packages/nvidia/cublas/lib", "libcublasLt.so.12");
  found("VIRTUAL_ENV", "/lib/python3.12/site-packages/nvidia/cu13/lib", "libcublasLt.so.13");
  // A file that is named is the one that is taken, or nothing.
  const ScopedVariable named("KILN_CUBLASLT", from.c_str());
  EXPECT_NE(open(error, sizeof error), nullptr) << error;
  EXPECT_EQ(opened, from);
  const ScopedVariable nowhere("KILN_CUBLASLT", "/nowhere");
  EXPECT_EQ(open(error, sizeof error), nullptr);
  EXPECT_NE(std::string(error).find("cannot be opened where KILN_CUBLASLT names it: /nowhere"), std::string::npos)
      << error;
}

TEST_F(LibraryTest, WithoutItAProgramThatHasNoKernelsForProductsIsRefused) {
  CompileOptions o = GpuOptions({"sm_80"}, true);
  o.gpu.fallback_kernels = false;
  const Products p(kProduct, o);
  p.ExpectRight(kOnLibrary);
  const ScopedVariable nowhere("KILN_CUBLASLT", "/nowhere");
  const auto program = p.program().Again();
  EmulatedDevice device(program->library());
  device.fake.major = 8;
  Gpu gpu(*program);
  EXPECT_EQ(gpu.status(), KILN_NO_DEVICE);
  EXPECT_NE(gpu.problem().find("/nowhere"), std::string::npos) << gpu.problem();
  EXPECT_NE(gpu.problem().find("the program has no kernels of its own for products"), std::string::npos)
      << gpu.problem();
}

TEST_F(LibraryTest, OneThatDoesNotStartIsDoneWithout) {
  lt.create_code = 1;
  Product().ExpectRight("products: 1 by kiln's own kernels (cuBLASLt does not start (1))");
}

TEST_F(LibraryTest, WithoutAnAlgorithmKilnsKernelRuns) {
  lt.candidates = 0;
  Product().ExpectRight(
      "products: 0 by cuBLASLt, 1 by kiln's own kernels (cuBLASLt has no way to multiply 40 x 24 by 24 x 32 (15))");
  lt = FakeCublasLt();
  lt.refuse = [](int, int, uint32_t epilogue) { return epilogue != 1; };
  Products(kRelu, GpuOptions({"sm_80"}, true)).ExpectRight("products: 0 by cuBLASLt, 1 by kiln's own kernels");
}

TEST_F(LibraryTest, ARefusalAtTheRunIsTakenOver) {
  const auto program = Product().program().Again();
  EmulatedDevice device(program->library());
  device.fake.major = 8;
  Gpu gpu(*program);
  ASSERT_EQ(gpu.status(), 0) << gpu.problem();
  Literal got(Product().want.shape());
  lt.multiply_code = 13;  // it failed, which is no refusal
  EXPECT_EQ(gpu.run_host(Product().Addresses(), {got.mutable_data()}), KILN_GPU);
  EXPECT_EQ(gpu.error(), "cuBLASLt fails to multiply 40 x 24 by 24 x 32 (13)");
  lt.multiply_code = 15;
  ASSERT_EQ(gpu.run_host(Product().Addresses(), {got.mutable_data()}), 0) << gpu.error();
  EXPECT_TRUE(got == Product().want);
  EXPECT_NE(gpu.report().find("0 by cuBLASLt, 1 by kiln's own"), std::string::npos) << gpu.report();
}

TEST_F(LibraryTest, IsAskedForTheAlignmentThatAddressesHave) {
  const auto program = Product().program().Again();
  EmulatedDevice device(program->library());
  device.fake.major = 8;
  Gpu gpu(*program);
  ASSERT_EQ(gpu.status(), 0) << gpu.problem();
  for (const uint32_t a : lt.alignment) EXPECT_EQ(a, 16U);
  // Arrays of the caller's, as misaligned as they may be.
  struct alignas(256) {
    char front[16];
    float values[40 * 32];
  } a, b, out;
  std::memcpy(a.values, Product().arguments[0].data(), 40 * 24 * 4);
  std::memcpy(b.values, Product().arguments[1].data(), 24 * 32 * 4);
  ASSERT_EQ(gpu.run({a.values, b.values}, {out.values}), 0) << gpu.error();
  ASSERT_EQ(gpu.wait(), 0) << gpu.error();
  EXPECT_EQ(std::memcmp(out.values, Product().want.data(), sizeof out.values), 0);
}

TEST_F(LibraryTest, ATunedAlgorithmIsKnownByItsWords) {
  const Products p(kProduct, Tuned(2, Temporary("two.tuning")));
  p.ExpectRight(kOnLibrary);
  EXPECT_EQ(lt.last_algorithm, 2);
  EXPECT_EQ(lt.checks, 1);
  // Another order of candidates changes nothing.
  lt.reversed = true;
  p.ExpectRight(kOnLibrary);
  EXPECT_EQ(lt.last_algorithm, 2);
  // Another version has its own words: its first candidate is taken.
  lt = FakeCublasLt();
  lt.version = 130100;
  p.ExpectRight(kOnLibrary);
  EXPECT_EQ(lt.checks, 0);
  EXPECT_EQ(lt.last_algorithm, 0);
  // So it is where the check refuses, and without any candidate kiln's own kernel is.
  lt = FakeCublasLt();
  lt.reject_words = true;
  p.ExpectRight(kOnLibrary);
  EXPECT_EQ(lt.last_algorithm, 0);
  lt.candidates = 0;
  p.ExpectRight("products: 0 by cuBLASLt, 1 by kiln's own kernels");
}

TEST_F(LibraryTest, ResultsThatNameAPlaceAmongCandidatesAreRefused) {
  const std::string file = Temporary("old.tuning");
  const std::string entry = absl::StrCat("devices { target: \"sm_80\" entries { key: \"", Key(),
                                         "\" hlo: \"f32[40,32] custom-call(...), "
                                         "custom_call_target=\\\"__cublas$lt$matmul\\\"\" candidates { algorithm: 7 ");
  ASSERT_TRUE(WriteFile(file, entry + "microseconds: 1 } } }").ok());
  const auto old = LoadTuning({file}, "");
  ASSERT_FALSE(old.ok());
  EXPECT_NE(old.status().message().find("old.tuning:1:"), std::string::npos) << old.status();
  EXPECT_NE(old.status().message().find("measure it again (kiln tune)"), std::string::npos) << old.status();
  ASSERT_TRUE(WriteFile(file, entry + "library_version: 1 library_algorithm: \"12\" } } }").ok());
  const auto broken = LoadTuning({file}, "");
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.status().message().find("is not 128 hexadecimal digits"), std::string::npos) << broken.status();
}

TEST_F(LibraryTest, AReluThatLosesNanIsNotUsed) {
  Products p(kRelu, GpuOptions({"sm_80"}, true));
  Element nan;
  nan.re = std::numeric_limits<double>::quiet_NaN();
  p.arguments[0].Set(30, nan);  // in the second row
  for (int64_t k = 32; k < 64; ++k) p.want.Set(k, nan);
  for (const bool drops : {false, true}) {
    lt.relu_drops_nan = drops;
    const auto program = p.program().Again();
    EmulatedDevice device(program->library());
    device.fake.major = 8;
    Gpu gpu(*program);
    ASSERT_EQ(gpu.status(), 0) << gpu.problem();
    std::vector<float> got(2 * 40 * 32);
    ASSERT_EQ(gpu.run_host(p.Addresses(), {got.data()}), 0) << gpu.error();
    for (size_t k = 0; k < got.size(); ++k) {
      const double want = p.want.Get(static_cast<int64_t>(k)).re;
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got[k]) : got[k] == want) << k;
    }
    EXPECT_EQ(gpu.report().find("0 by cuBLASLt, 1 by kiln's own kernels (this cuBLASLt's relu makes numbers of NaN)") !=
                  std::string::npos,
              drops)
        << gpu.report();
  }
}

// The code of an algorithm must be there before a recording needs it.
TEST_F(LibraryTest, NothingIsLoadedWithinARecording) {
  std::string chain = "HloModule m\nENTRY e {\n x0 = f32[32,32] parameter(0)\n";
  for (int k = 0; k < 6; ++k)
    absl::StrAppend(&chain, " d", k, " = f32[32,32] dot(x", k, ", x", k,
                    "), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n ", k == 5 ? "ROOT " : "", "x", k + 1,
                    " = f32[32,32] tanh(d", k, ")\n");
  const auto program = GpuProgram(chain + "}\n", GpuOptions({"sm_80"}, true));
  lt.lazy = true;
  EmulatedDevice device(program.library());
  device.fake.major = 8;
  Gpu gpu(program);
  ASSERT_EQ(gpu.status(), 0) << gpu.problem();
  std::vector<float> x(1024, 0.01f), first(1024), y(1024);
  ASSERT_EQ(gpu.run_host({x.data()}, {first.data()}), 0) << gpu.error();
  for (int run = 0; run < 3; ++run) {
    ASSERT_EQ(gpu.run_host({x.data()}, {y.data()}), 0) << gpu.error();
    EXPECT_EQ(y, first);
  }
  EXPECT_NE(gpu.report().find("products: 6 by cuBLASLt\nregions: 1 recorded"), std::string::npos) << gpu.report();
  EXPECT_GT(device.fake.replays, 0);
}

}  // namespace
}  // namespace kiln
