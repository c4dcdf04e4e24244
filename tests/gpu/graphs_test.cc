// Recording: when a program is recorded, what it keeps, what happens where the driver refuses, and recordings of the
// caller's.
#include <cmath>

#include "compiler/eval/evaluator.h"
#include "tests/gpu/gpu_program.h"
#include "tests/gpu/programs.h"

namespace kiln {
namespace {

const GpuProgram& Program() {
  static const auto* p = new GpuProgram(kProgram, GpuOptions({"sm_90"}));
  return *p;
}

// Arrays of one run.
struct Arrays {
  std::vector<float> x = std::vector<float>(1600), y = x, s = std::vector<float>(40);
  Arrays() {
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 7) / 100;
  }
};

class Graphs : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<char> arena(1 << 20);
    void *arguments[] = {want_.x.data()}, *results[] = {want_.y.data(), want_.s.data()};
    ASSERT_EQ(Program().entry()(arguments, results, arena.data(), device_.table(), nullptr), 0);
    ASSERT_EQ(gpu_.status(), 0) << gpu_.problem();
  }
  void Run(Arrays& a) {
    std::fill(a.y.begin(), a.y.end(), 0.f);
    ASSERT_EQ(gpu_.run({a.x.data()}, {a.y.data(), a.s.data()}), 0) << gpu_.error();
    ASSERT_EQ(gpu_.wait(), 0) << gpu_.error();
    EXPECT_EQ(a.y, want_.y);
    EXPECT_EQ(a.s, want_.s);
  }

  EmulatedDevice device_{Program().library()};
  FakeCuda& fake_ = device_.fake;
  Gpu gpu_{Program()};
  Arrays want_;
};

TEST_F(Graphs, TheFirstRunWarmsTheSecondRecordsTheThirdReplays) {
  Arrays a;
  Run(a);
  EXPECT_EQ(fake_.captures, 0);
  const int launches = fake_.launches, allocations = fake_.allocations;
  EXPECT_GT(launches, 5);
  Run(a);
  const int regions = fake_.captures;
  ASSERT_GT(regions, 0);
  EXPECT_EQ(fake_.instantiations, regions);
  EXPECT_EQ(fake_.replays, regions);
  Run(a);
  EXPECT_EQ(fake_.captures, regions);
  EXPECT_EQ(fake_.replays, 2 * regions);
  EXPECT_EQ(fake_.launches, 3 * launches);
  EXPECT_EQ(fake_.allocations, allocations);
  EXPECT_NE(gpu_.report().find("regions: " + std::to_string(regions) + " recorded"), std::string::npos)
      << gpu_.report();
}

TEST_F(Graphs, AddressesThatAlternateAreKept) {
  std::vector<Arrays> arrays(5);
  Run(arrays[0]);
  Run(arrays[0]);
  const int regions = fake_.captures;
  for (int round = 0; round < 3; ++round)
    for (int k = 0; k < 4; ++k) Run(arrays[k]);
  EXPECT_EQ(fake_.captures, 4 * regions);
  EXPECT_EQ(fake_.instantiations, 4 * regions);
  EXPECT_EQ(fake_.updates, 0);
  Run(arrays[4]);  // takes the place of the one that was used longest ago
  EXPECT_EQ(fake_.captures, 5 * regions);
  EXPECT_EQ(fake_.updates, regions);
  EXPECT_EQ(fake_.instantiations, 4 * regions);
  for (int k = 1; k < 4; ++k) Run(arrays[k]);
  EXPECT_EQ(fake_.captures, 5 * regions);
}

TEST_F(Graphs, WhatTheDriverRefusesRunsDirectlyAndIsSaid) {
  Arrays a;
  for (const char* name : {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"}) {
    Gpu gpu(Program());
    ASSERT_EQ(gpu.status(), 0) << gpu.problem();
    fake_.failures[name] = {0, 900, true};
    for (int run = 0; run < 4; ++run) {
      std::fill(a.y.begin(), a.y.end(), 0.f);
      ASSERT_EQ(gpu.run({a.x.data()}, {a.y.data(), a.s.data()}), 0) << name << ": " << gpu.error();
      ASSERT_EQ(gpu.wait(), 0) << name << ": " << gpu.error();
      EXPECT_EQ(a.y, want_.y) << name;
    }
    EXPECT_NE(gpu.report().find("regions: 0 recorded, 1 never ("), std::string::npos) << name << ": " << gpu.report();
    EXPECT_NE(gpu.report().find("operation not permitted when stream is capturing (900)"), std::string::npos)
        << name << ": " << gpu.report();
    fake_.failures.clear();
  }
}

TEST_F(Graphs, OneFailureIsNotForEver) {
  Arrays a;
  Run(a);
  fake_.failures["cuGraphInstantiateWithFlags"] = {0, 2};
  Run(a);
  EXPECT_EQ(fake_.replays, 0);
  Run(a);
  EXPECT_GT(fake_.replays, 0);
  EXPECT_NE(gpu_.report().find("regions: 1 recorded"), std::string::npos) << gpu_.report();
}

TEST_F(Graphs, AnUpdateThatFailsBecomesANewGraph) {
  std::vector<Arrays> arrays(6);
  Run(arrays[0]);
  for (int k = 0; k < 4; ++k) Run(arrays[k]);
  fake_.failures["cuGraphExecUpdate_v2"] = {0, 910, true};
  Run(arrays[4]);
  Run(arrays[5]);
  EXPECT_EQ(fake_.updates, 0);
}

TEST_F(Graphs, AGraphThatDoesNotStartIsAnError) {
  Arrays a;
  Run(a);
  fake_.failures["cuGraphLaunch"] = {0, 2};
  EXPECT_EQ(gpu_.run({a.x.data()}, {a.y.data(), a.s.data()}), KILN_GPU);
  EXPECT_EQ(gpu_.error(), "a graph does not start: out of memory (2)");
  Run(a);
}

// The stream of a caller who records a graph of his own.
class Recorded : public Graphs {
 protected:
  void SetUp() override {
    Graphs::SetUp();
    enum { kNonBlocking = 1 };
    Driver<int(void*)>("cuCtxPushCurrent_v2")(&fake_);
    ASSERT_EQ(Driver<int(void**, unsigned)>("cuStreamCreate")(&stream_, kNonBlocking), 0);
  }
  void TearDown() override {
    void* mine;
    Driver<int(void**)>("cuCtxPopCurrent_v2")(&mine);
  }
  int Begin(int mode = 0) { return Driver<int(void*, int)>("cuStreamBeginCapture_v2")(stream_, mode); }
  // What was recorded, ready to run.
  void* End() {
    void *graph = nullptr, *exec = nullptr;
    EXPECT_EQ(Driver<int(void*, void**)>("cuStreamEndCapture")(stream_, &graph), 0);
    if (!graph) return nullptr;
    EXPECT_EQ(Driver<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags")(&exec, graph, 0), 0);
    return exec;
  }
  void Replay(void* exec) {
    ASSERT_EQ(Driver<int(void*, void*)>("cuGraphLaunch")(exec, stream_), 0);
    ASSERT_EQ(Driver<int(void*)>("cuStreamSynchronize")(stream_), 0);
  }
  void* stream_ = nullptr;
};

TEST_F(Recorded, ARunBecomesAPartOfTheCallersGraph) {
  for (const bool warm : {true, false}) {
    Gpu gpu(Program(), stream_);
    ASSERT_EQ(gpu.status(), 0) << gpu.problem();
    Arrays a;
    if (warm) {
      ASSERT_EQ(gpu.run({a.x.data()}, {a.y.data(), a.s.data()}), 0) << gpu.error();
      ASSERT_EQ(gpu.wait(), 0);
    }
    std::vector<float> next = a.x;
    ASSERT_EQ(gpu.upload(a.x.data(), next.data(), 6400), 0);  // which only the host can wait for now
    std::fill(a.y.begin(), a.y.end(), 0.f);
    const int launches = fake_.launches;
    ASSERT_EQ(Begin(), 0);
    ASSERT_EQ(gpu.run({a.x.data()}, {a.y.data(), a.s.data()}), 0) << gpu.error();
    void* exec = End();
    ASSERT_NE(exec, nullptr);
    EXPECT_EQ(fake_.launches, launches) << "it ran while it was recorded";
    for (int k = 0; k < 2; ++k) {
      std::fill(a.y.begin(), a.y.end(), 0.f);
      Replay(exec);
      EXPECT_EQ(a.y, want_.y);
    }
  }
}

TEST_F(Recorded, ValuesDecideInTheCallersGraphToo) {
  const GpuProgram program(kDecisions, GpuOptions({"sm_90"}));
  EmulatedDevice device(program.library());
  Driver<int(void*)>("cuCtxPushCurrent_v2")(&fake_);
  auto module = ParseHlo(kDecisions, "m.hlo");
  ASSERT_TRUE(module.ok());
  ASSERT_EQ(Driver<int(void**, unsigned)>("cuStreamCreate")(&stream_, 1), 0);
  for (const bool conditions : {true, false}) {
    device.fake.no_conditions = !conditions;
    Gpu gpu(program, stream_);
    ASSERT_EQ(gpu.status(), 0) << gpu.problem();
    alignas(16) int32_t n[4] = {0};
    std::vector<float> a(64, 20.f), c(64);
    ASSERT_EQ(gpu.run({a.data()}, {n, c.data()}), 0) << gpu.error();
    ASSERT_EQ(gpu.wait(), 0) << gpu.error();
    const int32_t steps = n[0];
    EXPECT_GT(steps, 3);
    ASSERT_EQ(Begin(2), 0);
    const int32_t status = gpu.run({a.data()}, {n, c.data()});
    void* exec = End();  // the recording is whole either way
    ASSERT_NE(exec, nullptr);
    if (!conditions) {
      EXPECT_EQ(status, KILN_GPU) << "the host cannot read a value that is not there yet";
      continue;
    }
    ASSERT_EQ(status, 0) << gpu.error();
    std::fill(a.begin(), a.end(), 1.5f);
    Replay(exec);
    EXPECT_GT(n[0], 0);
    EXPECT_LT(n[0], steps);
    EXPECT_EQ(device.fake.loads_in_recordings, 0);
  }
}

// An update keeps the handles of conditional nodes, so that a loop in it would never run.
TEST(Conditional, GraphsAreMadeAnewForOtherAddresses) {
  const GpuProgram program(kDecisions, GpuOptions({"sm_90"}));
  EmulatedDevice device(program.library());
  Gpu gpu(program);
  ASSERT_EQ(gpu.status(), 0) << gpu.problem();
  struct Arrays {
    std::vector<float> a = std::vector<float>(64, 20.f), c = std::vector<float>(64);
    alignas(16) int32_t n[4] = {0};
  };
  std::vector<std::unique_ptr<Arrays>> arrays;
  int32_t steps = 0;
  for (int k = 0; k < 12; ++k) {
    arrays.push_back(std::make_unique<Arrays>());
    Arrays& r = *arrays.back();
    ASSERT_EQ(gpu.run({r.a.data()}, {r.n, r.c.data()}), 0) << gpu.error();
    ASSERT_EQ(gpu.wait(), 0) << gpu.error();
    if (k == 0) steps = r.n[0];
    EXPECT_GT(r.n[0], 3);
    EXPECT_EQ(r.n[0], steps) << "run " << k;
    EXPECT_EQ(r.c, arrays[0]->c) << "run " << k;
  }
  EXPECT_GT(device.fake.conditional_nodes, 0);
  EXPECT_EQ(device.fake.updates, 0);
  EXPECT_EQ(device.fake.loads_in_recordings, 0) << "the kernel of conditions was compiled within a recording";
}

}  // namespace
}  // namespace kiln
