// Tuning end to end: the tuning program over the fake driver and the emulator, its results in a compile. Candidates are
// spoiled behind their launch: one that writes outside its arrays, one with a wrong result, one that crashes.
#include "aot/tuning/tuner.h"

#include <unistd.h>

#include <csignal>

#include "aot/tuning/results.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/tuning.h"
#include "tests/gpu/emulated_device.h"

namespace kiln {
namespace {

constexpr char kProgram[] = R"(HloModule m
ENTRY e {
  a = bf16[64,48] parameter(0)
  b = bf16[48,40] parameter(1)
  c = f32[24,16] parameter(2)
  d = f32[16,8] parameter(3)
  x = f32[64,40] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[24,8] dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[24,8] dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  w = f32[24,8] subtract(y, z)
  ROOT t = (f32[64,40], f32[24,8], f32[24,8]) tuple(x, y, w)
})";

std::unique_ptr<Module> Parsed() {
  auto m = ParseHlo(kProgram, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  return std::move(*m);
}

CompileOptions Options() {
  CompileOptions o;
  o.model.name = "m";
  o.cpu.levels.clear();
  o.gpu.targets = {"sm_80"};
  o.gpu.libraries = false;
  return o;
}

class Tune : public testing::Test {
 protected:
  void SetUp() override {
    CompileOptions o = Options();
    auto tuner = MakeTuner(Parsed(), o, false);
    ASSERT_TRUE(tuner.ok()) << tuner.status();
    EXPECT_EQ(tuner->subjects, 2);         // equal products are one
    EXPECT_EQ(tuner->candidates, 16 + 8);  // bf16 on every tile, f32 on those of threads
    o.gpu.emulation = GpuOptions::Emulation::kPlain;
    auto emulated = MakeTuner(Parsed(), o, false);
    ASSERT_TRUE(emulated.ok()) << emulated.status();
    static void* const program = LoadArchive(tuner->archive, "tuner");
    static void* const kernels = LoadArchive(emulated->archive, "kernels");
    const auto* library = static_cast<const gpu::EmulatedLibrary*>(dlsym(kernels, "m_emulated"));
    tune_ = reinterpret_cast<int32_t (*)(int32_t, char**)>(dlsym(program, "m_tune"));
    ASSERT_TRUE(library && tune_);
    device_ = std::make_unique<EmulatedDevice>(library);
    file_ = std::string(std::getenv("TEST_TMPDIR")) + "/m.tuning";
    unlink(file_.c_str());
  }

  int32_t Run(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"m",      "--out=" + file_, "--rounds=1", "--least-ms=0", "--redzone-bytes=1024",
                                      "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    return tune_(static_cast<int32_t>(argv.size()), argv.data());
  }
  std::string Written() {
    auto text = ReadFile(file_);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? *text : "";
  }
  // The line of the results on an algorithm of the product of bf16.
  std::string LineOf(int64_t algorithm) {
    const std::string text = Written();
    const size_t entry = text.find("bf16[");
    const size_t at = text.find("algorithm: " + std::to_string(algorithm) + " ", entry);
    return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
  }

  int32_t (*tune_)(int32_t, char**) = nullptr;
  std::unique_ptr<EmulatedDevice> device_;
  std::string file_;
};

bool Is(const std::string& kernel, int tile) {
  const std::string end = "_s0_t" + std::to_string(tile);
  return kernel.size() >= end.size() && kernel.compare(kernel.size() - end.size(), end.size(), end) == 0;
}

TEST_F(Tune, MeasuresEveryCandidateAndASecondCompileTimesNothing) {
  ASSERT_EQ(Run(), 0);
  const std::string text = Written();
  EXPECT_NE(text.find("target: \"sm_80\""), std::string::npos) << text;
  EXPECT_NE(text.find("name: \"a fake\""), std::string::npos) << text;
  EXPECT_EQ(text.find("failure"), std::string::npos) << text;
  CompileOptions o = Options();
  const auto before = Compile(Parsed(), o);
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(before->report.untuned.size(), 2U);
  o.gpu.tuning.strict = true;
  const auto refused = Compile(Parsed(), o);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("has no tuning result for sm_80, and strict_tuning asks for one"),
            std::string::npos)
      << refused.status();
  auto tuning = LoadTuning({file_}, "");
  ASSERT_TRUE(tuning.ok()) << tuning.status();
  o.gpu.tuning.results = *tuning;
  const auto after = Compile(Parsed(), o);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(after->report.untuned.empty());
  // Nothing is left to measure.
  const auto second = MakeTuner(Parsed(), o, false);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->subjects, 0);
  EXPECT_EQ(second->known, 2);
  EXPECT_TRUE(second->archive.empty());
  // Another GPU has results of its own.
  o.gpu.targets = {"sm_90"};
  o.gpu.tuning.strict = false;
  const auto other = Compile(Parsed(), o);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->report.untuned.size(), 2U);
}

TEST_F(Tune, RejectsWhatWritesOutsideItsArrays) {
  device_->after_launch = [](const std::string& kernel, void* const* buffers) {
    constexpr int64_t kResultBytes = 64 * 40 * 4;
    if (Is(kernel, 7)) static_cast<char*>(buffers[2])[kResultBytes + 3] = 0;
    if (Is(kernel, 8)) static_cast<char*>(buffers[0])[-5] = 0;
    return 0;
  };
  ASSERT_EQ(Run(), 0);
  EXPECT_NE(LineOf(7).find("failure: \"redzone modified\" message: \"writes 3 bytes behind array 2"), std::string::npos)
      << Written();
  EXPECT_NE(LineOf(8).find("failure: \"redzone modified\" message: \"writes 5 bytes before array 0"), std::string::npos)
      << Written();
  EXPECT_EQ(LineOf(6).find("failure"), std::string::npos) << Written();
}

TEST_F(Tune, RejectsAWrongResultAndOneThatFails) {
  device_->after_launch = [](const std::string& kernel, void* const* buffers) {
    if (Is(kernel, 5)) static_cast<float*>(buffers[2])[17] += 3;
    return Is(kernel, 9) ? 719 : 0;
  };
  ASSERT_EQ(Run(), 0);
  EXPECT_NE(LineOf(5).find("failure: \"wrong result\" message: \"element 17 is"), std::string::npos) << Written();
  EXPECT_NE(LineOf(9).find("failure: \"disqualified\" message: \"the stream failed: an error of the fake driver (719)"),
            std::string::npos)
      << Written();
}

TEST_F(Tune, ACrashCostsOneCandidate) {
  device_->after_launch = [](const std::string& kernel, void* const*) {
    if (Is(kernel, 0) || Is(kernel, 6)) raise(SIGKILL);
    return 0;
  };
  ASSERT_EQ(Run(), 0);
  for (int crashed : {0, 6})
    EXPECT_NE(LineOf(crashed).find("failure: \"unknown\" message: \"the process ended (signal 9)\""), std::string::npos)
        << Written();
  for (int fine : {1, 5, 7, 10}) EXPECT_EQ(LineOf(fine).find("failure"), std::string::npos) << Written();
}

// Of a library's algorithm the results have the library's own words, which a compile takes over.
TEST(TuneLibrary, AlgorithmsAreWrittenWithTheirWords) {
  constexpr char kText[] = R"(HloModule m
ENTRY e {
  a = f32[64,1024] parameter(0)
  b = f32[1024,64] parameter(1)
  ROOT d = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";
  const auto parsed = [&] { return std::move(*ParseHlo(kText, "m.hlo")); };
  CompileOptions o = Options();
  o.gpu.libraries = true;
  const auto tuner = MakeTuner(parsed(), o, false);
  ASSERT_TRUE(tuner.ok()) << tuner.status();
  EXPECT_EQ(tuner->candidates, 16);  // as many as the library is asked for
  o.gpu.emulation = GpuOptions::Emulation::kPlain;
  const auto emulated = MakeTuner(parsed(), o, false);
  ASSERT_TRUE(emulated.ok()) << emulated.status();
  void* const program = LoadArchive(tuner->archive, "library_tuner");
  void* const kernels = LoadArchive(emulated->archive, "library_tuner_kernels");
  EmulatedDevice device(static_cast<const gpu::EmulatedLibrary*>(dlsym(kernels, "m_emulated")));
  device.fake.major = 8;
  const std::string file = std::string(std::getenv("TEST_TMPDIR")) + "/library.tuning";
  std::vector<std::string> words = {"m", "--out=" + file, "--rounds=1", "--least-ms=0", "--quiet"};
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  const auto tune = reinterpret_cast<int32_t (*)(int32_t, char**)>(dlsym(program, "m_tune"));
  ASSERT_NE(tune, nullptr);
  ASSERT_EQ(tune(static_cast<int32_t>(argv.size()), argv.data()), 0);
  auto text = ReadFile(file);
  ASSERT_TRUE(text.ok()) << text.status();
  // Two of the fake library's three are supported; candidates beyond these fail.
  EXPECT_NE(text->find("library_version: 130000 library_algorithm: \"000000006b696c6e"), std::string::npos) << *text;
  EXPECT_NE(text->find("algorithm: 2 failure: \"disqualified\" message: \"cuBLASLt has no way 2 to multiply"),
            std::string::npos)
      << *text;
  o = Options();
  o.gpu.libraries = true;
  auto tuning = LoadTuning({file}, "", nullptr, &o.gpu.tuning.algorithms);
  ASSERT_TRUE(tuning.ok()) << tuning.status();
  ASSERT_EQ(o.gpu.tuning.algorithms.size(), 2U);
  for (const auto& [key, algorithm] : o.gpu.tuning.algorithms) {
    EXPECT_EQ(algorithm.version, 130000);
    ASSERT_EQ(algorithm.words.size(), 8U);
    EXPECT_EQ(algorithm.words[0], 0x6b696c6eU);
    EXPECT_EQ(algorithm.words[3], 16U) << "tuned for addresses of any program";
  }
}

TEST_F(Tune, TheFastestValidOneThatIsNotDeniedIsChosen) {
  const auto module = Parsed();
  CompileOptions o = Options();
  ASSERT_EQ(Run(), 0);
  std::string text = Written();
  const size_t key_at = text.find("key: \"") + 6;
  const std::string key = text.substr(key_at, 16);
  const std::string results = file_ + ".two", list = file_ + ".deny";
  ASSERT_TRUE(WriteFile(results, "devices { target: \"sm_80\" versions: \"driver 12040\" entries { key: \"" + key +
                                     "\" candidates { algorithm: 8 microseconds: 2 } candidates { algorithm: 7 "
                                     "microseconds: 3 } candidates { algorithm: 9 microseconds: 1 failure: \"wrong "
                                     "result\" } } }")
                  .ok());
  const auto choice = [&](const std::string& deny) {
    EXPECT_TRUE(WriteFile(list, deny).ok());
    auto tuning = LoadTuning({results}, list);
    EXPECT_TRUE(tuning.ok()) << tuning.status();
    const auto found = (*tuning)->Find("sm_80", key);
    return found ? found->algorithm : -1;
  };
  const std::string eight = "denied { key: \"" + key + "\" target: \"sm_80\" algorithm: 8 ";
  EXPECT_EQ(choice(""), 8);
  EXPECT_EQ(choice(eight + "}"), 7);
  EXPECT_EQ(choice(eight + "versions: \"driver 12040\" }"), 7);
  EXPECT_EQ(choice(eight + "versions: \"driver 11000\" }"), 8);
  // Neither is it measured again.
  ASSERT_TRUE(WriteFile(list, eight + "}").ok());
  auto denied = LoadTuning({}, list);
  ASSERT_TRUE(denied.ok());
  o.gpu.tuning.results = *denied;
  const auto tuner = MakeTuner(Parsed(), o, false);
  ASSERT_TRUE(tuner.ok()) << tuner.status();
  EXPECT_EQ(tuner->candidates, 16 + 8 - 1);
  auto broken = LoadTuning({list}, "");
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.status().message().find(list + ":1:"), std::string::npos) << broken.status();
}

}  // namespace
}  // namespace kiln
