// Devices that NCCL connects, where one fails or does not come, and where NCCL refuses: every device's run ends, in
// time, with an error that says what is known, and nothing is left.
#include <barrier>
#include <chrono>

#include "runtime_min/gpu/nccl/nccl_abi.h"
#include "tests/gpu/nccl_devices.h"

namespace kiln {
namespace {

constexpr char kSums[] = R"(HloModule m, replica_count=4
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64] parameter(0)
  pairs = f32[64] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add
  square = f32[64] multiply(pairs, pairs)
  all = f32[64] all-reduce(square), replica_groups={{0,1,2,3}}, to_apply=add
  moved = f32[64] collective-permute(all), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  ROOT r = f32[64] negate(moved)
})";

CompileOptions Impatient(int64_t milliseconds) {
  CompileOptions o = GpuOptions({"sm_90"});
  o.model.device_timeout_ms = milliseconds;
  return o;
}

class Clock {
 public:
  int64_t ms() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

constexpr int64_t kLimit = 400, kAtOnce = 30000;

void ExpectNothingLeft(NcclDevices& devices) {
  EXPECT_EQ(NCCL(fake_nccl_live)(), 0) << "communicators are left";
  EXPECT_EQ(devices.fake().live, 0);
}

TEST(NcclFaults, ADeviceThatNeverComesEndsTheConnection) {
  NcclDevices devices(kSums, Impatient(kLimit));
  devices.SetTimeout(kLimit);
  const Clock clock;
  devices.OnEach([&](NcclDevices::Device& d) {
    if (d.number == 2) return;
    EXPECT_EQ(d.Run(), KILN_TIMEOUT);
    EXPECT_NE(d.gpu.error().find("connecting the devices"), std::string::npos) << d.gpu.error();
  });
  EXPECT_LT(clock.ms(), kAtOnce);
  ExpectNothingLeft(devices);
}

TEST(NcclFaults, ADeviceThatStopsEndsTheRunsOfTheOthers) {
  NcclDevices devices(kSums, Impatient(kLimit));
  std::barrier ended(devices.count());
  devices.OnEach([&](NcclDevices::Device& d) {
    EXPECT_EQ(d.Run(), 0) << d.gpu.error();
    EXPECT_EQ(d.Run(), 0) << d.gpu.error();
    if (d.number != 2) {
      const int32_t status = d.Run();
      // The first that gives up tells the others.
      EXPECT_TRUE(status == KILN_TIMEOUT || status == KILN_COMMUNICATION) << status;
      EXPECT_FALSE(d.gpu.error().empty());
      EXPECT_EQ(d.Run(), status) << "a failed connection stays failed";
    }
    ended.arrive_and_wait();
  });
  ExpectNothingLeft(devices);
}

TEST(NcclFaults, TheTimeLimitNamesTheExchange) {
  NcclDevices devices(kSums, Impatient(kLimit));
  std::barrier ended(devices.count());
  std::atomic<int> named{0};
  devices.OnEach([&](NcclDevices::Device& d) {
    d.gpu.set_graphs(false);
    EXPECT_EQ(d.Run(), 0) << d.gpu.error();
    if (d.number != 1 && d.Run() == KILN_TIMEOUT)
      named += d.gpu.error() == "pairs: another device did not come within 400 ms, or is gone" ||
               d.gpu.error() == "all: another device did not come within 400 ms, or is gone";
    ended.arrive_and_wait();
  });
  EXPECT_GE(named, 1);
}

// A device whose own run fails ends those of the others at once.
TEST(NcclFaults, ADeviceThatFailsEndsTheOthersAtOnce) {
  NcclDevices devices(kSums);
  const Clock clock;
  std::barrier ended(devices.count());
  devices.OnEach([&](NcclDevices::Device& d) {
    EXPECT_EQ(d.Run(), 0) << d.gpu.error();
    ended.arrive_and_wait();
    if (d.number == 3)
      EXPECT_EQ(d.gpu.run({nullptr}, {nullptr}), KILN_NULL_POINTER);
    else
      EXPECT_EQ(d.Run(), KILN_COMMUNICATION) << d.gpu.error();
    ended.arrive_and_wait();
  });
  EXPECT_LT(clock.ms(), kAtOnce);
  ExpectNothingLeft(devices);
}

// After a failure all devices set a comm and go on.
TEST(NcclFaults, DevicesAreConnectedAnew) {
  NcclDevices devices(kSums);
  const auto want = devices.Expected();
  std::barrier together(devices.count());
  devices.OnEach([&](NcclDevices::Device& d) {
    EXPECT_EQ(d.Run(), 0);
    together.arrive_and_wait();
    if (d.number == 0) NCCL(fake_nccl_fail)("AllReduce", 0, kNcclInternalError);
    together.arrive_and_wait();
    EXPECT_NE(d.Run(), 0);
    together.arrive_and_wait();
    if (d.number == 0) devices.Reset();
    together.arrive_and_wait();
    d.gpu.set_comm(devices.comm(d.number));
    for (int k = 0; k < 3; ++k) {
      ASSERT_EQ(d.Run(), 0) << d.gpu.error();
      EXPECT_EQ(d.results[0].Get(5).re, want[static_cast<size_t>(d.number)][0].Get(5).re);
    }
  });
  ExpectNothingLeft(devices);
}

// Whatever NCCL refuses, once: the run of that device fails, the others end, nothing is left.
TEST(NcclFaults, EveryFunctionMayFail) {
  for (const char* function : {"GetUniqueId", "CommInitRankConfig", "CommSplit", "CommGetAsyncError", "GroupStart",
                               "GroupEnd", "AllReduce", "Send", "Recv"})
    for (const int64_t after : {0, 3}) {
      if (std::string(function) == "GetUniqueId" && after) continue;
      SCOPED_TRACE(function);
      NcclDevices devices(kSums, Impatient(2000));
      devices.SetTimeout(2000);
      NCCL(fake_nccl_fail)(function, after, kNcclSystemError);
      std::barrier ended(devices.count());
      std::atomic<int> failed{0}, named{0};
      devices.OnEach([&](NcclDevices::Device& d) {
        for (int k = 0; k < 2; ++k)
          if (d.Run() != 0) {
            ++failed;
            named += d.gpu.error().find("unhandled system error") != std::string::npos;
            break;
          }
        ended.arrive_and_wait();
      });
      EXPECT_EQ(failed, devices.count());
      EXPECT_GE(named, 1);
      ExpectNothingLeft(devices);
    }
}

// Every call of the driver fails once, on whichever device makes it: all runs end, with an error, and nothing is left.
TEST(NcclFaults, EveryCallOfTheDriverMayFail) {
  constexpr int64_t kStride = 13, kPatience = 1000;
  NcclDevices devices(kSums, Impatient(kPatience));
  devices.SetTimeout(kPatience);
  const auto run_all = [&] {
    std::barrier ended(devices.count());
    std::atomic<int> failed{0};
    devices.OnEach(
        [&](NcclDevices::Device& d) {
          kiln_comm* comm = devices.comm(d.number);
          if (d.gpu.status() != 0) comm->fail(comm->self, d.number, d.gpu.status());  // as the host program has to
          d.gpu.set_comm(comm);
          for (int k = 0; k < 3; ++k)
            if (d.gpu.status() != 0 || d.Run() != 0) {
              ++failed;
              break;
            }
          ended.arrive_and_wait();
        },
        /*connect=*/false);
    return failed.load();
  };
  const int64_t before = devices.fake().calls;
  ASSERT_EQ(run_all(), 0);
  const int64_t calls = devices.fake().calls - before;
  ASSERT_GT(calls, 100);
  int ended_early = 0;
  for (int64_t n = 0; n < calls; n += kStride) {
    devices.fake().fail_call = devices.fake().calls + n;
    devices.fake().failed.clear();
    const Clock clock;
    const int failed = run_all();
    ended_early += failed > 0;
    EXPECT_LT(clock.ms(), kAtOnce) << "call " << n << ": " << devices.fake().failed;
    EXPECT_EQ(NCCL(fake_nccl_live)(), 0) << "call " << n << ": " << devices.fake().failed;
    devices.Reset();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(ended_early, 5);
}

// A host program may bring an id to the devices itself.
TEST(NcclFaults, AnIdConnectsDevicesWithoutAComm) {
  NcclDevices devices(kSums);
  const auto want = devices.Expected();
  char id[128], error[256] = "";
  ASSERT_EQ(devices.Find<decltype(kiln_model_gpu_nccl_id)>("gpu_nccl_id")(id, error, sizeof error), 0) << error;
  devices.OnEach(
      [&](NcclDevices::Device& d) {
        EXPECT_EQ(d.gpu.connect(d.number + 100, id), KILN_DEVICE);
        ASSERT_EQ(d.gpu.connect(d.number, id), 0) << d.gpu.error();
        for (int k = 0; k < 3; ++k) ASSERT_EQ(d.Run(), 0) << d.gpu.error();
        EXPECT_EQ(d.results[0].Get(7).re, want[static_cast<size_t>(d.number)][0].Get(7).re);
      },
      /*connect=*/false);
  EXPECT_EQ(devices.gathers(), 0);
  ExpectNothingLeft(devices);
}

}  // namespace
}  // namespace kiln
