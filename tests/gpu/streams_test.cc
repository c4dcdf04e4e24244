// Order and memory: the caller's default stream, page-locked memory, addresses that kernels cannot read, threads that
// share a program, memory that runs out, and a device that has failed.
#include <cstring>
#include <thread>

#include "tests/gpu/gpu_program.h"
#include "tests/gpu/programs.h"

namespace kiln {
namespace {

const GpuProgram& Program() {
  static const auto* p = new GpuProgram(kProgram, GpuOptions({"sm_90"}));
  return *p;
}

class Streams : public testing::Test {
 protected:
  void SetUp() override {
    for (size_t k = 0; k < x_.size(); ++k) x_[k] = static_cast<float>(k % 7) / 100;
    want_ = Expected(x_);
  }
  std::vector<float> Expected(std::vector<float> x) {
    std::vector<float> y(1600), s(40);
    std::vector<char> arena(1 << 20);
    void *arguments[] = {x.data()}, *results[] = {y.data(), s.data()};
    EXPECT_EQ(Program().entry()(arguments, results, arena.data(), device_.table(), nullptr), 0);
    return y;
  }

  EmulatedDevice device_{Program().library()};
  FakeCuda& fake_ = device_.fake;
  std::vector<float> x_ = std::vector<float>(1600), want_, y_ = x_, s_ = std::vector<float>(40);
};

TEST_F(Streams, TheDefaultStreamIsFollowedAndFollows) {
  Driver<int(void*)>("cuCtxPushCurrent_v2")(&fake_);
  const auto copy = Driver<int(uint64_t, uint64_t, size_t, void*)>("cuMemcpyDtoDAsync_v2");
  for (const intptr_t handle : {0, 1}) {
    void* stream = reinterpret_cast<void*>(handle);
    Gpu gpu(Program(), stream);
    ASSERT_EQ(gpu.status(), 0) << gpu.problem();
    for (int run = 0; run < 3; ++run) {
      std::vector<float> in(1600, 7.f), out(1600);
      std::fill(y_.begin(), y_.end(), 0.f);
      // The caller's work before and after, with no wait between.
      ASSERT_EQ(copy(reinterpret_cast<uint64_t>(in.data()), reinterpret_cast<uint64_t>(x_.data()), 6400, stream), 0);
      ASSERT_EQ(gpu.run({in.data()}, {y_.data(), s_.data()}), 0) << gpu.error();
      ASSERT_EQ(copy(reinterpret_cast<uint64_t>(out.data()), reinterpret_cast<uint64_t>(y_.data()), 6400, stream), 0);
      ASSERT_EQ(Driver<int(void*)>("cuStreamSynchronize")(stream), 0);
      EXPECT_EQ(out, want_) << "stream " << handle << ", run " << run;
    }
    EXPECT_NE(gpu.report().find("1 recorded"), std::string::npos) << "runs of the default stream are recorded too";
  }
}

TEST_F(Streams, AnOwnStreamLeavesTheDefaultStreamAlone) {
  Gpu gpu(Program());
  ASSERT_EQ(gpu.run_host({x_.data()}, {y_.data(), s_.data()}), 0) << gpu.error();
  for (const std::string& what : fake_.order) EXPECT_EQ(what.find("default"), std::string::npos) << what;
}

TEST_F(Streams, PageLockedMemoryMayBeUsedAgainAfterToDevice) {
  Gpu gpu(Program());
  auto* host = static_cast<float*>(gpu.malloc_host(6400));
  void* x = gpu.malloc(6400);
  ASSERT_TRUE(host && x);
  std::memcpy(host, x_.data(), 6400);
  ASSERT_EQ(gpu.to_device(x, host, 6400), 0) << gpu.error();
  std::memset(host, 0xff, 6400);
  ASSERT_EQ(gpu.run({x}, {y_.data(), s_.data()}), 0) << gpu.error();
  ASSERT_EQ(gpu.wait(), 0);
  EXPECT_EQ(y_, want_);
  // Of pageable memory the driver has a copy, and nothing waits.
  const int waits = fake_.waits;
  std::vector<float> pageable = x_;
  ASSERT_EQ(gpu.to_device(x, pageable.data(), 6400), 0);
  EXPECT_EQ(fake_.waits, waits);
  gpu.free(x);
  gpu.free_host(host);
}

TEST_F(Streams, AddressesThatKernelsCannotReadAreRefused) {
  Gpu gpu(Program());
  std::vector<float> shifted(1604);
  void* const odd = reinterpret_cast<char*>(shifted.data()) + 4;
  EXPECT_EQ(gpu.run({odd}, {y_.data(), s_.data()}), KILN_MISALIGNED);
  EXPECT_NE(gpu.error().find("argument 0 lies at 0x"), std::string::npos) << gpu.error();
  EXPECT_NE(gpu.error().find("no multiple of 16"), std::string::npos) << gpu.error();
  EXPECT_EQ(gpu.run({x_.data()}, {y_.data(), odd}), KILN_MISALIGNED);
  EXPECT_EQ(gpu.run({x_.data()}, {y_.data(), s_.data()}, odd), KILN_MISALIGNED);
  EXPECT_EQ(gpu.run({nullptr}, {y_.data(), s_.data()}), KILN_NULL_POINTER);
  EXPECT_EQ(gpu.error(), "argument 0 is a null pointer");
  EXPECT_EQ(gpu.run({x_.data()}, {nullptr, s_.data()}), KILN_NULL_POINTER);
  EXPECT_EQ(gpu.run_host({nullptr}, {y_.data(), s_.data()}), KILN_NULL_POINTER);
  EXPECT_EQ(gpu.to_device(nullptr, x_.data(), 4), KILN_NULL_POINTER);
  // The device is as it was.
  ASSERT_EQ(gpu.run({x_.data()}, {y_.data(), s_.data()}), 0) << gpu.error();
  ASSERT_EQ(gpu.wait(), 0) << gpu.error();
  EXPECT_EQ(y_, want_);
}

TEST_F(Streams, ThreadsTakeTurns) {
  Gpu gpu(Program());
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> in, want, out(4, std::vector<float>(1600));
  for (int t = 0; t < 4; ++t) {
    in.push_back(x_);
    for (float& v : in.back()) v += static_cast<float>(t) / 50;
    want.push_back(Expected(in.back()));
  }
  std::vector<int32_t> status(4);
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> s(40);
      for (int run = 0; run < 5 && !status[t]; ++run)
        status[t] = gpu.run_host({in[t].data()}, {out[t].data(), s.data()});
    });
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(status[t], 0);
    EXPECT_EQ(out[t], want[t]) << "thread " << t;
  }
}

TEST_F(Streams, RunHostKeepsItsArrays) {
  Gpu gpu(Program());
  for (int run = 0; run < 2; ++run) ASSERT_EQ(gpu.run_host({x_.data()}, {y_.data(), s_.data()}), 0);
  const int allocations = fake_.allocations, captures = fake_.captures;
  for (int run = 0; run < 3; ++run) {
    std::fill(y_.begin(), y_.end(), 0.f);
    ASSERT_EQ(gpu.run_host({x_.data()}, {y_.data(), s_.data()}), 0);
    EXPECT_EQ(y_, want_);
  }
  EXPECT_EQ(fake_.allocations, allocations);
  EXPECT_EQ(fake_.captures, captures);
}

TEST_F(Streams, MemoryThatRunsOutIsAnErrorAndNothingStays) {
  int refused = 0;
  for (int64_t memory = 0; memory < 64 << 10; memory += 256) {
    const int live = fake_.live;
    fake_.memory = memory;
    {
      Gpu gpu(Program());
      const int32_t status = gpu.status() ? gpu.status() : gpu.run_host({x_.data()}, {y_.data(), s_.data()});
      if (status) {
        ++refused;
        EXPECT_EQ(status, KILN_GPU);
        const std::string why = gpu.status() ? gpu.problem() : gpu.error();
        EXPECT_NE(why.find("out of memory (2)"), std::string::npos) << why;
      }
    }
    EXPECT_EQ(fake_.live, live);
  }
  EXPECT_GT(refused, 10);
  EXPECT_LT(refused, 250);
}

TEST_F(Streams, AContextThatCannotBeHadLeavesTheCallersAlone) {
  Gpu gpu(Program());
  fake_.failures["cuCtxPushCurrent_v2"] = {0, 201};
  const int popped = fake_.contexts_popped;
  EXPECT_EQ(gpu.run({x_.data()}, {y_.data(), s_.data()}), KILN_GPU);
  EXPECT_EQ(gpu.error(), "no context on the GPU: invalid device context (201)");
  EXPECT_EQ(fake_.contexts_popped, popped);
  ASSERT_EQ(gpu.run({x_.data()}, {y_.data(), s_.data()}), 0) << gpu.error();
}

TEST_F(Streams, AFailedDeviceIsAnErrorEverAfter) {
  for (const int graphs : {0, 1}) {
    EmulatedDevice device(Program().library());
    Gpu gpu(Program());
    gpu.set_graphs(graphs);
    ASSERT_EQ(gpu.run_host({x_.data()}, {y_.data(), s_.data()}), 0) << gpu.error();
    device.after_launch = [](const std::string&, void* const*) { return 719; };
    // The run itself only starts the kernels.
    ASSERT_EQ(gpu.run({x_.data()}, {y_.data(), s_.data()}), 0) << gpu.error();
    EXPECT_EQ(gpu.wait(), KILN_GPU);
    device.after_launch = nullptr;
    EXPECT_EQ(gpu.wait(), KILN_GPU);
    EXPECT_EQ(gpu.run({x_.data()}, {y_.data(), s_.data()}), KILN_GPU);
    EXPECT_EQ(gpu.run_host({x_.data()}, {y_.data(), s_.data()}), KILN_GPU);
    EXPECT_EQ(gpu.malloc(16), nullptr);
    EXPECT_NE(gpu.error().find("(719)"), std::string::npos) << gpu.error();
  }
}

}  // namespace
}  // namespace kiln
