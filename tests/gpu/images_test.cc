// Which image of a library runs, and what a machine is told where none does.
#include "tests/gpu/gpu_program.h"
#include "tests/gpu/programs.h"

namespace kiln {
namespace {

const GpuProgram& Program() {
  static const auto* p = new GpuProgram(kProgram, GpuOptions({"sm_80", "sm_86", "sm_90"}));
  return *p;
}

class Images : public testing::Test {
 protected:
  // Runs the program, and compares it with what the emulator alone computes.
  void ExpectRight(Gpu& gpu) {
    std::vector<float> x(1600), y(1600), s(40), want_y(1600), want_s(40);
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 7) / 100;
    ASSERT_EQ(gpu.run_host({x.data()}, {y.data(), s.data()}), 0) << gpu.error();
    std::vector<char> arena(1 << 20);
    void *arguments[] = {x.data()}, *results[] = {want_y.data(), want_s.data()};
    ASSERT_EQ(Program().entry()(arguments, results, arena.data(), device_.table(), nullptr), 0);
    EXPECT_EQ(y, want_y);
    EXPECT_EQ(s, want_s);
  }
  std::string ImageOn(int major, int minor) {
    device_.fake.major = major;
    device_.fake.minor = minor;
    Gpu gpu(Program());
    return gpu.status() ? gpu.problem() : gpu.image();
  }

  EmulatedDevice device_{Program().library()};
};

TEST_F(Images, TheBestForTheDeviceComesFirst) {
  EXPECT_EQ(ImageOn(8, 0), "sm_80");
  EXPECT_EQ(ImageOn(8, 6), "sm_86");
  EXPECT_EQ(ImageOn(8, 9), "sm_86");  // a later minor runs the code of an earlier one
  EXPECT_EQ(ImageOn(9, 0), "sm_90");
  EXPECT_EQ(ImageOn(12, 0), "PTX of sm_90");
  EXPECT_EQ(ImageOn(7, 5),
            "the library has no code for GPU 0 of compute capability 7.5 (it has: sm_80, sm_86, sm_90, PTX of sm_90)");
}

TEST_F(Images, WhatTheDriverRefusesIsFollowedByTheNextBest) {
  // Machine code of a toolkit that is newer than the driver.
  device_.fake.refuse_image = [](bool cubin, const void*) { return cubin ? 209 : 0; };
  Gpu gpu(Program());
  ASSERT_EQ(gpu.status(), 0) << gpu.problem();
  EXPECT_EQ(gpu.image(), "PTX of sm_90");
  EXPECT_NE(gpu.report().find("image: PTX of sm_90 (refused: sm_90: no kernel image is available for execution on the "
                              "device (209))"),
            std::string::npos)
      << gpu.report();
  ExpectRight(gpu);
}

TEST_F(Images, GridsAreThoseOfTheImageThatRuns) {
  device_.fake.major = 8;
  device_.fake.minor = 6;
  int asked = 0;
  device_.fake.refuse_image = [&](bool, const void*) { return asked++ == 0 ? 200 : 0; };
  Gpu gpu(Program());
  ASSERT_EQ(gpu.status(), 0) << gpu.problem();
  EXPECT_EQ(gpu.image(), "sm_80");
  ExpectRight(gpu);  // the emulator's kernels are those of sm_80
}

TEST_F(Images, AllThatWereTriedAreNamed) {
  device_.fake.refuse_image = [](bool cubin, const void*) { return cubin ? 200 : 222; };
  Gpu gpu(Program());
  EXPECT_EQ(gpu.status(), KILN_NO_DEVICE);
  EXPECT_EQ(gpu.problem(),
            "the driver (for CUDA 12.4) loads none of the library's images: sm_90: device kernel image is invalid "
            "(200); PTX of sm_90: the provided PTX was compiled with an unsupported toolchain. (222)");
}

TEST_F(Images, ADriverThatDoesNotStartSaysWhatToDo) {
  const std::pair<int, const char*> kCodes[] = {{100, "finds no GPU"},       {802, "nvidia-fabricmanager"},
                                                {803, "different versions"}, {804, "LD_LIBRARY_PATH"},
                                                {999, "/dev/nvidia"},        {34, "stub"}};
  for (const auto& [code, advice] : kCodes) {
    device_.fake.init_code = code;
    Gpu gpu(Program());
    EXPECT_EQ(gpu.status(), KILN_NO_DEVICE);
    EXPECT_NE(gpu.problem().find("(" + std::to_string(code) + ")"), std::string::npos) << gpu.problem();
    EXPECT_NE(gpu.problem().find(advice), std::string::npos) << gpu.problem();
  }
  device_.fake.init_code = 0;
  Gpu other(Program(), KILN_GPU_OWN_STREAM, 3);
  EXPECT_EQ(other.problem(), "there is no GPU 3: the machine has 1");
}

// Every call of the driver fails once: an error value, the caller's context as it was, nothing left behind.
TEST_F(Images, AnyCallOfTheDriverMayFail) {
  int64_t failed = 0;
  for (int64_t k = 0;; ++k) {
    device_.fake = [&] {
      FakeCuda f;
      f.self = device_.fake.self;
      f.buffers_of = device_.fake.buffers_of;
      f.launch = device_.fake.launch;
      f.fail_call = k;
      return f;
    }();
    std::vector<float> x(1600, 0.01f), y(1600), s(40);
    int32_t status = 0;
    {
      Gpu gpu(Program());
      status = gpu.status();
      for (int run = 0; run < 3 && !status; ++run) status = gpu.run_host({x.data()}, {y.data(), s.data()});
      if (!status) status = gpu.wait();
    }
    const std::string& name = device_.fake.failed;
    if (name.empty()) break;
    ++failed;
    if (name.find("CtxPop") == std::string::npos) {
      EXPECT_EQ(device_.fake.contexts_pushed, device_.fake.contexts_popped) << k << " " << name;
    } else {
      void* left;
      Driver<int(void**)>("cuCtxPopCurrent_v2")(&left);
    }
    const bool frees = name.find("Free") != name.npos || name.find("Destroy") != name.npos ||
                       name.find("Unload") != name.npos || name.find("CtxPush") != name.npos ||
                       name.find("EndCapture") != name.npos;
    if (!frees) {
      EXPECT_EQ(device_.fake.live, 0) << k << " " << name;
    }
    // What cannot be recorded runs all the same, an image has a next best, and what cannot be freed has run.
    const bool harmless = frees || device_.fake.failed_in_recording || name == "cuModuleLoadData" ||
                          name.find("Capture") != name.npos || name.find("Graph") != name.npos ||
                          name.find("CtxPop") != name.npos || name.find("CtxRelease") != name.npos ||
                          name == "cuStreamSynchronize" || name.find("ErrorString") != name.npos;
    if (!harmless) {
      EXPECT_NE(status, 0) << k << " " << name;
    }
  }
  EXPECT_GT(failed, 60);
}

}  // namespace
}  // namespace kiln
