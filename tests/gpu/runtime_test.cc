// The GPU runtime over a fake CUDA driver whose kernels are the program's own, run by the emulator: results are right,
// loops and choices that values decide are part of graphs, copies go on beside runs, and several devices meet through
// the host.
#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "aot/compile.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/gpu/model.h"
#include "runtime_min/gpu/program.h"
#include "tests/gpu/emulated_device.h"
#include "tests/gpu/programs.h"

namespace kiln {
namespace {

// Each device's row times the number of the device, summed over pairs of devices; what the host sent, sent back.
constexpr char kDevices[] = R"(HloModule d, replica_count=2, num_partitions=2
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[300] parameter(0)
  r = u32[] replica-id()
  p = u32[] partition-id()
  two = u32[] constant(2)
  r2 = u32[] multiply(r, two)
  id = u32[] add(r2, p)
  f = f32[] convert(id)
  fb = f32[300] broadcast(f), dimensions={}
  y = f32[300] multiply(x, fb)
  s = f32[300] all-reduce(y), channel_id=1, use_global_device_ids=true, replica_groups={{0,3},{1,2}}, to_apply=add
  token = token[] after-all()
  in = (f32[300], token[]) infeed(token)
  fed = f32[300] get-tuple-element(in), index=0
  after = token[] get-tuple-element(in), index=1
  t = f32[300] add(s, fed)
  out = token[] outfeed(t, after), outfeed_shape=f32[300]
  ROOT u = f32[300] negate(t)
})";

CompiledModel CompileFor(const std::vector<std::string>& gpus, GpuOptions::Emulation emulation,
                         const char* text = kProgram) {
  auto m = ParseHlo(text, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  CompileOptions o;
  o.model.name = "m";
  o.cpu.levels.clear();
  o.gpu.targets = gpus;
  o.gpu.libraries = false;
  o.gpu.emulation = emulation;
  if (text == kDevices) o.gpu.transport = GpuOptions::Transport::kHost;
  auto model = Compile(std::move(*m), o);
  EXPECT_TRUE(model.ok()) << model.status();
  return std::move(*model);
}

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    static const LoadedModel emulated = LoadModel(CompileFor({}, GpuOptions::Emulation::kPlain), "emulated");
    static const LoadedModel program =
        LoadModel(CompileFor({"sm_80", "sm_90"}, GpuOptions::Emulation::kNone), "program");
    const auto* library = emulated.Emulated();
    entry_ = reinterpret_cast<kiln_gpu_region>(emulated.Find("gpu_entry"));
    ASSERT_TRUE(library && entry_);
    device_ = std::make_unique<EmulatedDevice>(library);
    const auto find = [&](const char* name) {
      void* f = program.Find(name);
      EXPECT_NE(f, nullptr) << name;
      return f;
    };
    create_ = reinterpret_cast<decltype(create_)>(find("gpu_create"));
    destroy_ = reinterpret_cast<decltype(destroy_)>(find("gpu_destroy"));
    run_ = reinterpret_cast<decltype(run_)>(find("gpu_run"));
    run_host_ = reinterpret_cast<decltype(run_host_)>(find("gpu_run_host"));
    wait_ = reinterpret_cast<decltype(wait_)>(find("gpu_wait"));
    upload_ = reinterpret_cast<decltype(upload_)>(find("gpu_upload"));
    download_ = reinterpret_cast<decltype(download_)>(find("gpu_download"));
    set_graphs_ = reinterpret_cast<decltype(set_graphs_)>(find("gpu_set_graphs"));
    for (size_t k = 0; k < x_.size(); ++k) x_[k] = static_cast<float>(k % 7) / 100;
  }

  // What the emulator computes without the runtime.
  std::vector<float> Expected(std::vector<float>* sums) {
    std::vector<float> x = x_, y(1600);
    sums->assign(40, 0);
    std::vector<char> arena(1 << 20);
    void* arguments[] = {x.data()};
    void* results[] = {y.data(), sums->data()};
    EXPECT_EQ(entry_(arguments, results, arena.data(), device_->table(), nullptr), 0);
    return y;
  }

  std::unique_ptr<EmulatedDevice> device_;
  kiln_gpu_region entry_ = nullptr;
  int32_t (*create_)(void**, int32_t, void*, char*, size_t) = nullptr;
  void (*destroy_)(void*) = nullptr;
  int32_t (*run_)(void*, void* const*, void* const*, void*) = nullptr;
  int32_t (*run_host_)(void*, const void* const*, void* const*) = nullptr;
  int32_t (*wait_)(void*) = nullptr;
  void (*set_graphs_)(void*, int32_t) = nullptr;
  int32_t (*upload_)(void*, void*, const void*, size_t) = nullptr;
  int32_t (*download_)(void*, void*, const void*, size_t) = nullptr;
  std::vector<float> x_ = std::vector<float>(1600);
  char error_[256] = "";
};

TEST_F(Runtime, ComputesWhatTheEmulatorComputes) {
  std::vector<float> sums, want = Expected(&sums);
  for (const int graphs : {0, 1}) {
    void* gpu = nullptr;
    ASSERT_EQ(create_(&gpu, 0, KILN_GPU_OWN_STREAM, error_, sizeof error_), 0) << error_;
    set_graphs_(gpu, graphs);
    std::vector<float> y(1600), s(40);
    const void* arguments[] = {x_.data()};
    void* results[] = {y.data(), s.data()};
    ASSERT_EQ(run_host_(gpu, arguments, results), 0);
    EXPECT_EQ(y, want);
    EXPECT_EQ(s, sums);
    destroy_(gpu);
  }
}

TEST(Decisions, AreNodesOfGraphs) {
  const LoadedModel emulated =
      LoadModel(CompileFor({}, GpuOptions::Emulation::kPlain, kDecisions), "decisions_emulated");
  const LoadedModel program = LoadModel(CompileFor({"sm_90"}, GpuOptions::Emulation::kNone, kDecisions), "decisions");
  const auto* library = emulated.Emulated();
  ASSERT_TRUE(library);
  EmulatedDevice device(library);
  const auto create = reinterpret_cast<int32_t (*)(void**, int32_t, void*, char*, size_t)>(program.Find("gpu_create"));
  const auto destroy = reinterpret_cast<void (*)(void*)>(program.Find("gpu_destroy"));
  const auto run = reinterpret_cast<int32_t (*)(void*, const void* const*, void* const*)>(program.Find("gpu_run_host"));
  const auto set_graphs = reinterpret_cast<void (*)(void*, int32_t)>(program.Find("gpu_set_graphs"));
  ASSERT_TRUE(create && destroy && run && set_graphs);
  auto module = ParseHlo(kDecisions, "m.hlo");
  ASSERT_TRUE(module.ok()) << module.status();
  enum { kHost, kGraphs, kOldDriver };
  for (const int how : {kHost, kGraphs, kOldDriver}) {
    void* gpu = nullptr;
    char error[256] = "";
    ASSERT_EQ(create(&gpu, 0, KILN_GPU_OWN_STREAM, error, sizeof error), 0) << error;
    set_graphs(gpu, how != kHost);
    device.fake.no_conditions = how == kOldDriver;
    device.fake.conditional_nodes = device.fake.decisions = 0;
    std::set<int64_t> steps;
    for (const double scale : {1.5, 20.0, 100.0, 3.0}) {
      Literal a(Shape::Array(PrimitiveType::F32, {64}));
      for (int64_t k = 0; k < 64; ++k)
        a.Set(k, Literal::Of(PrimitiveType::F32, scale * (1 + static_cast<double>(k) / 64)).Get(0));
      auto want = Evaluate(**module, {a});
      ASSERT_TRUE(want.ok()) << want.status();
      int32_t n = 0;
      std::vector<float> c(64);
      const void* arguments[] = {a.data()};
      void* results[] = {&n, c.data()};
      ASSERT_EQ(run(gpu, arguments, results), 0);
      EXPECT_EQ(n, want->elements()[0].Get(0).i);
      for (int64_t k = 0; k < 64; ++k)
        EXPECT_NEAR(c[static_cast<size_t>(k)], want->elements()[1].Get(k).re,
                    1e-5 * std::abs(want->elements()[1].Get(k).re));
      steps.insert(n);
    }
    EXPECT_GE(steps.size(), 3U) << "the loop should end after different numbers of steps";
    EXPECT_EQ(device.fake.conditional_nodes > 0, how == kGraphs);
    EXPECT_EQ(device.fake.decisions > 0, how == kGraphs);
    destroy(gpu);
  }
}

TEST_F(Runtime, CopiesGoOnBesideRuns) {
  std::vector<float> sums, want = Expected(&sums);
  void* gpu = nullptr;
  ASSERT_EQ(create_(&gpu, 0, KILN_GPU_OWN_STREAM, error_, sizeof error_), 0) << error_;
  std::vector<float> x(1600), y(1600), s(40), host(1600);
  void* arguments[] = {x.data()};
  void* results[] = {y.data(), s.data()};
  device_->fake.order.clear();
  ASSERT_EQ(upload_(gpu, x.data(), x_.data(), 6400), 0);
  ASSERT_EQ(run_(gpu, arguments, results, nullptr), 0);
  ASSERT_EQ(download_(gpu, host.data(), y.data(), 6400), 0);
  ASSERT_EQ(run_(gpu, arguments, results, nullptr), 0);  // nothing more was uploaded
  ASSERT_EQ(wait_(gpu), 0);
  EXPECT_EQ(host, want);
  // Stream 0 runs the program; 1 uploads and 2 downloads.
  EXPECT_EQ(device_->fake.order, (std::vector<std::string>{"to device on 1", "event on 1", "0 awaits 1", "event on 0",
                                                           "2 awaits 0", "to host on 2"}));
  destroy_(gpu);
}

TEST(SeveralDevices, MeetThroughTheHost) {
  const LoadedModel emulated = LoadModel(CompileFor({}, GpuOptions::Emulation::kPlain, kDevices), "devices_emulated");
  const LoadedModel program = LoadModel(CompileFor({"sm_90"}, GpuOptions::Emulation::kNone, kDevices), "devices");
  const auto* library = emulated.Emulated();
  ASSERT_TRUE(library);
  EmulatedDevice device(library);
  constexpr int kCount = 4, kElements = 300;
  device.fake.devices = kCount;
  const auto find = [&](const char* name) {
    void* f = program.Find(name);
    EXPECT_NE(f, nullptr) << name;
    return f;
  };
  const auto create = reinterpret_cast<int32_t (*)(void**, int32_t, void*, char*, size_t)>(find("gpu_create"));
  const auto destroy = reinterpret_cast<void (*)(void*)>(find("gpu_destroy"));
  const auto set_comm = reinterpret_cast<void (*)(void*, const kiln_comm*)>(find("gpu_set_comm"));
  const auto run = reinterpret_cast<int32_t (*)(void*, const void* const*, void* const*)>(find("gpu_run_host"));
  const auto error_of = reinterpret_cast<const char* (*)(const void*)>(find("gpu_error"));
  const auto world_create = reinterpret_cast<void* (*)(int64_t)>(find("world_create"));
  const auto world_comm = reinterpret_cast<kiln_comm* (*)(void*, int64_t)>(find("world_comm"));
  const auto world_destroy = reinterpret_cast<void (*)(void*)>(find("world_destroy"));

  void* const world = world_create(kCount);
  std::vector<std::vector<float>> x(kCount, std::vector<float>(kElements)), y = x, sent = x, fed = x;
  std::vector<std::string> errors(kCount);
  std::vector<int32_t> alone(kCount), codes(kCount);
  std::vector<std::thread> threads;
  for (int d = 0; d < kCount; ++d) {
    for (int k = 0; k < kElements; ++k) {
      x[d][k] = static_cast<float>(k + 7 * d);
      fed[d][k] = static_cast<float>(1000 * d);
    }
    kiln_comm* comm = world_comm(world, d);
    ASSERT_EQ(comm->send(comm->self, d, KILN_INFEED, fed[d].data(), kElements * 4), 0);
    threads.emplace_back([&, d, comm] {
      void* gpu = nullptr;
      char error[256] = "";
      codes[d] = create(&gpu, d, KILN_GPU_OWN_STREAM, error, sizeof error);
      errors[d] = error;
      if (codes[d]) return;
      const void* arguments[] = {x[d].data()};
      void* results[] = {y[d].data()};
      alone[d] = run(gpu, arguments, results);
      set_comm(gpu, comm);
      codes[d] = run(gpu, arguments, results);
      errors[d] = error_of(gpu);
      if (!codes[d]) codes[d] = comm->receive(comm->self, d, KILN_OUTFEED, sent[d].data(), kElements * 4);
      destroy(gpu);
    });
  }
  for (std::thread& t : threads) t.join();
  world_destroy(world);
  for (int d = 0; d < kCount; ++d) {
    EXPECT_EQ(alone[d], KILN_COMMUNICATION) << "a program that was not told how to communicate";
    ASSERT_EQ(codes[d], 0) << errors[d];
    const int other = kCount - 1 - d;
    for (int k = 0; k < kElements; ++k) {
      const float want = x[d][k] * static_cast<float>(d) + x[other][k] * static_cast<float>(other) + fed[d][k];
      ASSERT_EQ(sent[d][k], want) << "device " << d << ", element " << k;
      ASSERT_EQ(y[d][k], -want);
    }
  }
}

TEST(SeveralDevices, OneThatFailsEndsTheOthers) {
  const LoadedModel emulated = LoadModel(CompileFor({}, GpuOptions::Emulation::kPlain, kDevices), "failing_emulated");
  const LoadedModel program = LoadModel(CompileFor({"sm_90"}, GpuOptions::Emulation::kNone, kDevices), "failing");
  const auto* library = emulated.Emulated();
  ASSERT_TRUE(library);
  EmulatedDevice device(library);
  constexpr int kCount = 4, kElements = 300;
  device.fake.devices = kCount;
  const auto create = reinterpret_cast<int32_t (*)(void**, int32_t, void*, char*, size_t)>(program.Find("gpu_create"));
  const auto destroy = reinterpret_cast<void (*)(void*)>(program.Find("gpu_destroy"));
  const auto set_comm = reinterpret_cast<void (*)(void*, const kiln_comm*)>(program.Find("gpu_set_comm"));
  const auto run = reinterpret_cast<int32_t (*)(void*, void* const*, void* const*, void*)>(program.Find("gpu_run"));
  const auto run_host =
      reinterpret_cast<int32_t (*)(void*, const void* const*, void* const*)>(program.Find("gpu_run_host"));
  const auto world_create = reinterpret_cast<void* (*)(int64_t)>(program.Find("world_create"));
  const auto world_comm = reinterpret_cast<kiln_comm* (*)(void*, int64_t)>(program.Find("world_comm"));
  const auto world_destroy = reinterpret_cast<void (*)(void*)>(program.Find("world_destroy"));
  void* const world = world_create(kCount);
  std::vector<float> x(kElements), fed(kElements);
  std::vector<int32_t> codes(kCount);
  std::vector<std::thread> threads;
  // Before any device fails: sending ends with the world.
  for (int d = 0; d < kCount; ++d) {
    kiln_comm* comm = world_comm(world, d);
    ASSERT_EQ(comm->send(comm->self, d, KILN_INFEED, fed.data(), kElements * 4), 0);
  }
  for (int d = 0; d < kCount; ++d) {
    kiln_comm* comm = world_comm(world, d);
    threads.emplace_back([&, d, comm] {
      void* gpu = nullptr;
      char error[256] = "";
      codes[d] = create(&gpu, d, KILN_GPU_OWN_STREAM, error, sizeof error);
      if (codes[d]) return;
      set_comm(gpu, comm);
      std::vector<float> y(kElements);
      void* nothing[] = {nullptr};
      const void* arguments[] = {x.data()};
      void* results[] = {y.data()};
      codes[d] = d == 0 ? run(gpu, nothing, nothing, nullptr) : run_host(gpu, arguments, results);
      destroy(gpu);
    });
  }
  for (std::thread& t : threads) t.join();
  world_destroy(world);
  EXPECT_EQ(codes[0], KILN_NULL_POINTER);
  // At once, not by the limit of time. Devices 1 and 2 need only each other: they may be done before device 0 fails.
  for (int d : {1, 2})
    EXPECT_TRUE(codes[d] == 0 || codes[d] == KILN_COMMUNICATION) << "device " << d << ": " << codes[d];
  EXPECT_EQ(codes[3], KILN_COMMUNICATION);
}

}  // namespace
}  // namespace kiln
