// The GPU runtime over a fake CUDA driver whose kernels are the program's own, run by the emulator: the right image is
// loaded, results are right, graphs are recorded once and updated for new addresses, run() allocates nothing after the
// first call, loops and choices that values decide are part of graphs, copies go on beside runs, machines without a
// fitting GPU are told so, and several devices meet through the host.
#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "aot/compile.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/gpu/program.h"
#include "tests/gpu/emulated_device.h"

namespace kiln {
namespace {

constexpr char kProgram[] = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
body {
  s = (s32[], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[40,40] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  t = f32[40,40] transpose(x), dimensions={1,0}
  d = f32[40,40] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[40,40] tanh(d)
  ROOT r = (s32[], f32[40,40]) tuple(j, y)
}
cond {
  s = (s32[], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[40,40] parameter(0)
  w = f32[40] constant({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40})
  wb = f32[40,40] broadcast(w), dimensions={1}
  z = s32[] constant(0)
  xs = f32[40,40] multiply(x, wb)
  s = (s32[], f32[40,40]) tuple(z, xs)
  v = (s32[], f32[40,40]) while(s), condition=cond, body=body
  y = f32[40,40] get-tuple-element(v), index=1
  f = f32[] constant(0)
  sum = f32[40] reduce(y, f), dimensions={1}, to_apply=add
  ROOT t = (f32[40,40], f32[40]) tuple(y, sum)
})";

// Newton's square root until it is good enough, then one of three ends by the number of steps.
constexpr char kDecisions[] = R"(HloModule c
body {
  s = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[64] get-tuple-element(s), index=1
  x = f32[64] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  q = f32[64] divide(a, x)
  m = f32[64] add(x, q)
  h = f32[] constant(0.5)
  hb = f32[64] broadcast(h), dimensions={}
  y = f32[64] multiply(m, hb)
  ROOT r = (s32[], f32[64], f32[64]) tuple(j, a, y)
}
larger { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] maximum(p, q) }
cond {
  s = (s32[], f32[64], f32[64]) parameter(0)
  a = f32[64] get-tuple-element(s), index=1
  x = f32[64] get-tuple-element(s), index=2
  xx = f32[64] multiply(x, x)
  d = f32[64] subtract(xx, a)
  e = f32[64] abs(d)
  z = f32[] constant(0)
  worst = f32[] reduce(e, z), dimensions={0}, to_apply=larger
  tol = f32[] constant(0.001)
  ROOT l = pred[] compare(worst, tol), direction=GT
}
b0 { p = f32[64] parameter(0) ROOT r = f32[64] negate(p) }
b1 { p = f32[64] parameter(0) ROOT r = f32[64] sine(p) }
b2 { p = f32[64] parameter(0) ROOT r = f32[64] exponential(p) }
ENTRY e {
  a = f32[64] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[64], f32[64]) tuple(z, a, a)
  w = (s32[], f32[64], f32[64]) while(s), condition=cond, body=body
  n = s32[] get-tuple-element(w), index=0
  x = f32[64] get-tuple-element(w), index=2
  five = s32[] constant(5)
  k = s32[] subtract(n, five)
  c = f32[64] conditional(k, x, x, x), branch_computations={b0, b1, b2}
  ROOT t = (s32[], f32[64]) tuple(n, c)
})";

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

CompiledModel CompileFor(const std::vector<std::string>& gpus, CompileOptions::Emulation emulation,
                         const char* text = kProgram) {
  auto m = ParseHlo(text, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  CompileOptions o;
  o.name = "m";
  o.cpu_levels.clear();
  o.gpu_targets = gpus;
  o.gpu_libraries = false;
  o.emulation = emulation;
  auto model = Compile(std::move(*m), o);
  EXPECT_TRUE(model.ok()) << model.status();
  return std::move(*model);
}

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    static const LoadedModel emulated = LoadModel(CompileFor({}, CompileOptions::Emulation::kPlain), "emulated");
    static const LoadedModel program =
        LoadModel(CompileFor({"sm_80", "sm_90"}, CompileOptions::Emulation::kNone), "program");
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
    ASSERT_EQ(create_(&gpu, 0, nullptr, error_, sizeof error_), 0) << error_;
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

TEST_F(Runtime, RecordsOnceAndUpdatesForNewAddresses) {
  std::vector<float> sums, want = Expected(&sums);
  void* gpu = nullptr;
  ASSERT_EQ(create_(&gpu, 0, nullptr, error_, sizeof error_), 0) << error_;
  std::vector<float> x = x_, other = x_, y(1600), s(40);
  void* results[] = {y.data(), s.data()};
  const auto run = [&](std::vector<float>& from) {
    std::fill(y.begin(), y.end(), 0.f);
    void* arguments[] = {from.data()};
    ASSERT_EQ(run_(gpu, arguments, results, nullptr), 0);
    ASSERT_EQ(wait_(gpu), 0);
    EXPECT_EQ(y, want);
  };
  run(x);
  ASSERT_GT(device_->fake.captures, 0);
  const int captures = device_->fake.captures, allocations = device_->fake.allocations, replays = device_->fake.replays;
  EXPECT_EQ(device_->fake.instantiations, captures);
  const int per_run = device_->fake.launches;
  EXPECT_GT(per_run, 5);
  run(x);  // the same addresses: replayed as it is
  EXPECT_EQ(device_->fake.captures, captures);
  EXPECT_EQ(device_->fake.replays, 2 * replays);
  EXPECT_EQ(device_->fake.launches, 2 * per_run);
  run(other);  // another argument: recorded anew into the graph that is there
  EXPECT_EQ(device_->fake.captures, 2 * captures);
  EXPECT_EQ(device_->fake.updates, captures);
  EXPECT_EQ(device_->fake.instantiations, captures);
  EXPECT_EQ(device_->fake.allocations, allocations);
  destroy_(gpu);
}

TEST_F(Runtime, PicksTheImageAndRefusesWhatCannotRun) {
  const auto image = [&](int major, int minor) -> std::string {
    device_->fake.major = major;
    device_->fake.minor = minor;
    device_->fake.image = nullptr;
    void* gpu = nullptr;
    error_[0] = 0;
    const int32_t status = create_(&gpu, 0, nullptr, error_, sizeof error_);
    if (status != 0) return "refused";
    destroy_(gpu);
    constexpr char kElf[] =
        "\x7f"
        "ELF";
    return std::memcmp(device_->fake.image, kElf, 4) == 0 ? "machine code" : "PTX";
  };
  EXPECT_EQ(image(8, 0), "machine code");
  EXPECT_EQ(image(8, 6), "machine code");  // a later minor runs the code of an earlier one
  EXPECT_EQ(image(9, 0), "machine code");
  EXPECT_EQ(image(12, 0), "PTX");
  EXPECT_EQ(image(7, 5), "refused");
  EXPECT_NE(std::string(error_).find("no code for GPU 0 of compute capability 7.5"), std::string::npos) << error_;
  device_->fake.devices = 0;
  EXPECT_EQ(image(9, 0), "refused");
  EXPECT_NE(std::string(error_).find("finds no GPU"), std::string::npos) << error_;
}

TEST(Decisions, AreNodesOfGraphs) {
  const LoadedModel emulated =
      LoadModel(CompileFor({}, CompileOptions::Emulation::kPlain, kDecisions), "decisions_emulated");
  const LoadedModel program =
      LoadModel(CompileFor({"sm_90"}, CompileOptions::Emulation::kNone, kDecisions), "decisions");
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
    ASSERT_EQ(create(&gpu, 0, nullptr, error, sizeof error), 0) << error;
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
  ASSERT_EQ(create_(&gpu, 0, nullptr, error_, sizeof error_), 0) << error_;
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
  const LoadedModel emulated =
      LoadModel(CompileFor({}, CompileOptions::Emulation::kPlain, kDevices), "devices_emulated");
  const LoadedModel program = LoadModel(CompileFor({"sm_90"}, CompileOptions::Emulation::kNone, kDevices), "devices");
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
      codes[d] = create(&gpu, d, nullptr, error, sizeof error);
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

}  // namespace
}  // namespace kiln
