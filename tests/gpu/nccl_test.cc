// Programs whose devices NCCL connects, on a library that stands in for it.
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

}  // namespace
}  // namespace kiln
