// Programs whose devices NCCL connects, on a library that stands in for it.
#include <algorithm>

#include "tests/gpu/nccl_devices.h"

namespace kiln {
namespace {

// Every kind of exchange, whole numbers: sums are exact in any order.
constexpr char kAll[] = R"(HloModule m, replica_count=4
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
mul { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] multiply(a, b) }
ENTRY e {
  x = f32[4,6] parameter(0)
  n = s32[8] parameter(1)
  sum = f32[4,6] all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=add
  pairs = f32[4,6] all-reduce(sum), replica_groups={{0,2},{3,1}}, to_apply=add
  product = s32[8] all-reduce(n), replica_groups={{0,1,2,3}}, to_apply=mul
  scattered = f32[2,6] reduce-scatter(x), replica_groups={{0,1},{2,3}}, dimensions={0}, to_apply=add
  gathered = f32[4,12] all-gather(x), replica_groups={{0,3},{1,2}}, dimensions={1}
  all = f32[4,6] all-to-all(x), replica_groups={{0,1,2,3}}, dimensions={0}
  moved = f32[4,6] collective-permute(x), source_target_pairs={{0,1},{1,2},{2,0}}
  spread = s32[8] collective-broadcast(n), replica_groups={{2,0},{1,3}}
  ROOT t = (f32[4,6], s32[8], f32[2,6], f32[4,12], f32[4,6], f32[4,6], s32[8]) tuple(pairs, product, scattered, gathered, all, moved, spread)
})";

TEST(Nccl, MakesEveryExchange) {
  NcclDevices devices(kAll);
  constexpr int kRuns = 3;
  devices.ExpectRight(kRuns);
  const auto calls = NCCL(fake_nccl_calls);
  EXPECT_EQ(calls("GetUniqueId"), 1);
  EXPECT_EQ(calls("CommInitRankConfig"), 4);
  EXPECT_GT(calls("CommSplit"), 0);
  for (const char* function : {"AllReduce", "ReduceScatter", "AllGather", "Send", "Recv", "Broadcast"})
    EXPECT_GE(calls(function), 4) << function;
  // Only the id has gone through the host, once for each device.
  EXPECT_EQ(devices.gathers(), 4);
  // The second run records, the third replays: NCCL is called no more. (Of the three all-reduces two became one.)
  EXPECT_EQ(calls("AllReduce"), 2 * 4 * 2);
  EXPECT_GT(devices.fake().captures, 0);
  EXPECT_GE(devices.fake().replays, 2 * 4);
  EXPECT_EQ(NCCL(fake_nccl_live)(), 0) << "communicators are left";
  EXPECT_EQ(devices.fake().live, 0);
}

// NCCL's own reductions, those of parts and of bytes, and those that it lacks.
constexpr char kTypes[] = R"(HloModule m, replica_count=4
csum { a = c64[] parameter(0) b = c64[] parameter(1) ROOT c = c64[] add(a, b) }
both { a = pred[] parameter(0) b = pred[] parameter(1) ROOT c = pred[] and(a, b) }
some { a = pred[] parameter(0) b = pred[] parameter(1) ROOT c = pred[] or(a, b) }
bsum { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] add(a, b) }
hsum { a = f16[] parameter(0) b = f16[] parameter(1) ROOT c = f16[] add(a, b) }
least { a = u64[] parameter(0) b = u64[] parameter(1) ROOT c = u64[] minimum(a, b) }
most { a = s8[] parameter(0) b = s8[] parameter(1) ROOT c = s8[] maximum(a, b) }
short { a = s16[] parameter(0) b = s16[] parameter(1) ROOT c = s16[] add(a, b) }
bits { a = u32[] parameter(0) b = u32[] parameter(1) ROOT c = u32[] xor(a, b) }
peak { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
ENTRY e {
  c = c64[5] parameter(0)
  p = pred[9] parameter(1)
  b = bf16[7] parameter(2)
  h = f16[7] parameter(3)
  u = u64[3] parameter(4)
  i = s8[16] parameter(5)
  s = s16[6] parameter(6)
  w = u32[6] parameter(7)
  f = f32[8] parameter(8)
  r0 = c64[5] all-reduce(c), replica_groups={{0},{1,2,3}}, to_apply=csum
  r1 = pred[9] all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=both
  r2 = pred[9] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=some
  r3 = bf16[7] all-reduce(b), replica_groups={{0,1,2,3}}, to_apply=bsum
  r4 = f16[7] all-reduce(h), replica_groups={{0,1,2,3}}, to_apply=hsum
  r5 = u64[3] all-reduce(u), replica_groups={{0,1,2,3}}, to_apply=least
  r6 = s8[4] reduce-scatter(i), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=most
  r7 = s16[6] all-reduce(s), replica_groups={{0,1,2,3}}, to_apply=short
  r8 = u32[6] all-reduce(w), replica_groups={{0,1,2,3}}, to_apply=bits
  negative = f32[8] sqrt(f)
  r9 = f32[8] all-reduce(negative), replica_groups={{0,1,2,3}}, to_apply=peak
  ROOT t = (c64[5], pred[9], pred[9], bf16[7], f16[7], u64[3], s8[4], s16[6], u32[6], f32[8]) tuple(r0, r1, r2, r3, r4, r5, r6, r7, r8, r9)
})";

TEST(Nccl, ReducesEveryType) {
  NcclDevices devices(kTypes);
  devices.ExpectRight(3);
  EXPECT_EQ(devices.gathers(), 4);
  devices.OnEach([&](NcclDevices::Device& d) {
    EXPECT_EQ(d.gpu.report().find("connected by NCCL"), std::string::npos);
    ASSERT_EQ(d.Run(), 0) << d.gpu.error();
    const std::string who = "\ndevice " + std::to_string(d.number) + " of 4, connected by NCCL 2.26.2: ";
    EXPECT_NE(d.gpu.report().find(who), std::string::npos) << d.gpu.report();
  });
}

// Device i sends (i + j) % 3 rows to device j.
constexpr char kRagged[] = R"(HloModule m, replica_count=4
ENTRY e {
  x = f32[6,3] parameter(0)
  before = f32[7,3] parameter(1)
  id = u32[] replica-id()
  i = s32[] convert(id)
  zero = s32[] constant(0)
  counts = s32[4,4] constant({{0,1,2,0},{1,2,0,1},{2,0,1,2},{0,1,2,0}})
  starts = s32[4,4] constant({{0,0,1,3},{0,1,3,3},{0,2,2,3},{0,0,1,3}})
  places = s32[4,4] constant({{0,0,0,0},{0,1,2,0},{1,3,2,1},{3,3,3,3}})
  counts1 = s32[1,4] dynamic-slice(counts, i, zero), dynamic_slice_sizes={1,4}
  starts1 = s32[1,4] dynamic-slice(starts, i, zero), dynamic_slice_sizes={1,4}
  places1 = s32[1,4] dynamic-slice(places, i, zero), dynamic_slice_sizes={1,4}
  sizes = s32[4] reshape(counts1)
  from = s32[4] reshape(starts1)
  to = s32[4] reshape(places1)
  ROOT r = f32[7,3] ragged-all-to-all(x, before, from, sizes, to, sizes), replica_groups={{0,1,2,3}}
})";

TEST(Nccl, SendsAsManyRowsAsListsSay) {
  NcclDevices devices(kRagged);
  devices.ExpectRight(3);
  EXPECT_EQ(NCCL(fake_nccl_calls)("AllGather"), 0);
  EXPECT_EQ(devices.gathers(), 4);
}

constexpr char kRing[] = R"(HloModule m, replica_count=4
ENTRY e {
  x = f32[8] parameter(0)
  start = token[] after-all()
  r = (f32[8], u32[], token[]) recv(start), channel_id=0, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3},{3,0}}}
  rd = (f32[8], token[]) recv-done(r), channel_id=0
  y = f32[8] get-tuple-element(rd), index=0
  s = (f32[8], u32[], token[]) send(x, start), channel_id=0, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3},{3,0}}}
  sd = token[] send-done(s), channel_id=0
  ROOT n = f32[8] negate(y)
})";

// Nobody waits for anybody in a circle.
TEST(Nccl, SendsAndReceivesInARing) {
  NcclDevices devices(kRing);
  devices.OnEach([&](NcclDevices::Device& d) {
    for (int k = 0; k < 3; ++k) ASSERT_EQ(d.Run(), 0) << d.gpu.error();
    const std::vector<Literal> from = devices.Arguments((d.number + 3) % 4);
    for (int64_t e = 0; e < 8; ++e) EXPECT_EQ(d.results[0].Get(e).re, -from[0].Get(e).re);
  });
  EXPECT_GT(NCCL(fake_nccl_calls)("Send"), 0);
  EXPECT_EQ(devices.gathers(), 4);
}

constexpr char kSum[] = R"(HloModule m, replica_count=2
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64] parameter(0)
  y = f32[64,64] parameter(1)
  sum = f32[64] all-reduce(x), replica_groups={{0,1}}, to_apply=add
  rows = f32[64] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[64] add(sum, rows)
})";

// With an order to keep, sums are gathered; so they are where the program says that the host carries them.
TEST(Nccl, OrderedSumsAreGathered) {
  CompileOptions o = GpuOptions({"sm_90"});
  o.gpu.deterministic = true;
  NcclDevices devices(kSum, o);
  devices.ExpectRight(2);
  EXPECT_EQ(NCCL(fake_nccl_calls)("AllReduce"), 0);
  EXPECT_EQ(NCCL(fake_nccl_calls)("AllGather"), 2 * 2);
  EXPECT_EQ(devices.gathers(), 2);
}

TEST(Nccl, IsNotAskedWhereTheHostCarriesArrays) {
  CompileOptions o = GpuOptions({"sm_90"});
  o.gpu.transport = GpuOptions::Transport::kHost;
  NcclDevices devices(kSum, o);
  EXPECT_EQ(devices.Find<void>("gpu_connect"), nullptr) << "the library has no code for NCCL";
  devices.ExpectRight(2);
  EXPECT_EQ(NCCL(fake_nccl_calls)("CommInitRankConfig"), 0);
  EXPECT_EQ(devices.gathers(), 2 * 2);
}

constexpr char kBeside[] = R"(HloModule m, replica_count=2
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64] parameter(0)
  y = f32[64,64] parameter(1)
  sum = f32[64] all-reduce(x), replica_groups={{0,1}}, to_apply=add
  square = f32[64,64] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  rows = f32[64] dot(square, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[64] subtract(sum, rows)
})";

// The sum does not wait for the product, nor the product for the sum: it has a stream beside it, and events order both.
TEST(Nccl, ExchangesGoOnBesideKernels) {
  NcclDevices devices(kBeside);
  std::vector<std::string> order;
  devices.OnEach([&](NcclDevices::Device& d) {
    d.gpu.set_graphs(false);
    ASSERT_EQ(d.Run(), 0) << d.gpu.error();
    if (d.number == 0) order = devices.fake().order;
  });
  EXPECT_NE(std::find_if(order.begin(), order.end(),
                         [](const std::string& s) { return s.find(" awaits ") != std::string::npos; }),
            order.end());
  devices.ExpectRight(3);
}

// A run becomes part of the caller's own graph, once the devices are connected.
TEST(Nccl, RunsBecomePartsOfTheCallersGraph) {
  NcclDevices devices(kSum);
  const auto want = devices.Expected();
  devices.OnEach([&](NcclDevices::Device& d) {
    using Push = int(void*);
    void* context = nullptr;
    ASSERT_EQ(Driver<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, d.number), 0);
    ASSERT_EQ(Driver<Push>("cuCtxPushCurrent_v2")(context), 0);
    void* stream = nullptr;
    ASSERT_EQ(Driver<int(void**, unsigned)>("cuStreamCreate")(&stream, 1), 0);
    {
      Gpu mine(devices.program(), stream, d.number);
      ASSERT_EQ(mine.status(), 0);
      mine.set_comm(devices.comm(d.number));
      std::vector<void*> arguments, results = {mine.malloc(256)};
      for (const Literal& l : d.arguments) {
        arguments.push_back(mine.malloc(static_cast<size_t>(l.byte_size())));
        ASSERT_EQ(mine.to_device(arguments.back(), l.data(), static_cast<size_t>(l.byte_size())), 0);
      }
      // Of this thread alone: the other devices' copies do not disturb it.
      constexpr int kThreadLocal = 1;
      const auto begin = [&] { return Driver<int(void*, int)>("cuStreamBeginCapture_v2")(stream, kThreadLocal); };
      void *graph = nullptr, *exec = nullptr;
      const auto end = [&] { return Driver<int(void*, void**)>("cuStreamEndCapture")(stream, &graph); };
      ASSERT_EQ(begin(), 0);
      EXPECT_EQ(mine.run(arguments, results), KILN_COMMUNICATION);
      EXPECT_NE(mine.error().find("run once before a recording"), std::string::npos) << mine.error();
      ASSERT_EQ(end(), 0);
      if (graph) Driver<int(void*)>("cuGraphDestroy")(graph);
      devices.ResetTogether(d.number);
      mine.set_comm(devices.comm(d.number));
      ASSERT_EQ(mine.run(arguments, results), 0) << mine.error();
      ASSERT_EQ(mine.wait(), 0) << mine.error();
      ASSERT_EQ(begin(), 0);
      ASSERT_EQ(mine.run(arguments, results), 0) << mine.error();
      ASSERT_EQ(end(), 0);
      ASSERT_EQ(Driver<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags")(&exec, graph, 0), 0);
      for (int k = 0; k < 2; ++k) ASSERT_EQ(Driver<int(void*, void*)>("cuGraphLaunch")(exec, stream), 0);
      ASSERT_EQ(mine.wait(), 0) << mine.error();
      std::vector<float> got(64);
      ASSERT_EQ(mine.to_host(got.data(), results[0], 256), 0);
      EXPECT_EQ(got[9], want[static_cast<size_t>(d.number)][0].Get(9).re);
      Driver<int(void*)>("cuGraphDestroy")(graph);
      Driver<int(void*)>("cuGraphExecDestroy")(exec);
      for (void* a : arguments) mine.free(a);
      mine.free(results[0]);
    }
    Driver<int(void*)>("cuStreamDestroy_v2")(stream);
  });
  EXPECT_EQ(NCCL(fake_nccl_live)(), 0);
}

TEST(Nccl, SaysWhatIsMissing) {
  ASSERT_EQ(setenv("KILN_NCCL", "/nowhere/libnccl.so.2", 1), 0);
  NcclDevices devices(kSum);
  devices.OnEach([&](NcclDevices::Device& d) {
    EXPECT_EQ(d.Run(), KILN_COMMUNICATION);
    if (d.number == 0) {
      EXPECT_NE(d.gpu.error().find("NCCL cannot be opened where KILN_NCCL names it"), std::string::npos)
          << d.gpu.error();
    }
  });
  unsetenv("KILN_NCCL");
}

}  // namespace
}  // namespace kiln
