// What the library that stands in for NCCL refuses, and what it computes.
#include "aot/emulator/nccl_stand_in.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace kiln {
namespace {

thread_local int current = -1;
std::atomic<bool> recorded{false};
const int kGraph = 0;

// A stream is the address of its device's number; work on it is done when it is put there, or given up after a while.
class StandIn : public testing::Test {
 protected:
  void SetUp() override {
    SetStandInStreams({[] { return current; }, [](void* s) { return s ? *static_cast<int*>(s) : -1; },
                       [this](void* s) -> const void* { return s == captured_ ? &kGraph : nullptr; },
                       [](int) { return recorded.load(); },
                       [](void*, const std::function<int()>& attempt) {
                         for (int k = 0; k < 20000; ++k) {
                           const int code = attempt();
                           if (code != kNcclNotYet) return code == kNcclBroken ? 0 : code;
                           std::this_thread::sleep_for(std::chrono::microseconds(50));
                         }
                         return 702;
                       }});
    ResetNcclCalls();
    nccl_.GetUniqueId(&id_);
  }

  struct Rank {
    int rank;
    kiln_nccl_comm comm = nullptr;
    int device = 0;
    void* stream() { return &device; }
  };
  // Blocking communicators of `size` ranks, a thread each.
  template <typename F>
  void OnRanks(int size, const F& what) {
    std::barrier here(size);
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r)
      threads.emplace_back([&, r] {
        current = r;
        Rank rank = {r, nullptr, r};
        ASSERT_EQ(nccl_.CommInitRankConfig(&rank.comm, size, id_, r, nullptr), kNcclSuccess);
        here.arrive_and_wait();
        what(rank);
        EXPECT_EQ(nccl_.CommAbort(rank.comm), kNcclSuccess);
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(LiveNcclComms(), 0);
  }
  kiln_nccl_result StateOf(const Rank& r) {
    kiln_nccl_result state = kNcclInProgress;
    EXPECT_EQ(nccl_.CommGetAsyncError(r.comm, &state), kNcclSuccess);
    return state;
  }

  const kiln_nccl_library& nccl_ = NcclStandIn();
  kiln_nccl_id id_;
  void* captured_ = nullptr;
};

TEST_F(StandIn, RefusesWrongArguments) {
  OnRanks(1, [&](Rank& r) {
    float x[8] = {}, y[8] = {};
    const auto all_reduce = [&](const void* from, void* to, int type, int op, kiln_nccl_comm comm, void* stream) {
      return nccl_.AllReduce(from, to, 4, type, op, comm, stream);
    };
    EXPECT_EQ(all_reduce(x, y, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclSuccess);
    EXPECT_EQ(all_reduce(x, x, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclSuccess) << "in place";
    EXPECT_EQ(all_reduce(x, y, 17, kNcclSum, r.comm, r.stream()), kNcclInvalidArgument);
    EXPECT_EQ(all_reduce(x, y, kNcclFloat32, 9, r.comm, r.stream()), kNcclInvalidArgument);
    EXPECT_EQ(all_reduce(nullptr, y, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclInvalidArgument);
    EXPECT_EQ(all_reduce(x, y, kNcclFloat32, kNcclSum, nullptr, r.stream()), kNcclInvalidArgument);
    EXPECT_EQ(all_reduce(x, x + 1, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclInvalidUsage) << "overlap";
    int other = 7;
    EXPECT_EQ(all_reduce(x, y, kNcclFloat32, kNcclSum, r.comm, &other), kNcclUnhandledCudaError) << "its stream";
    EXPECT_EQ(nccl_.Broadcast(x, y, 4, kNcclFloat32, 1, r.comm, r.stream()), kNcclInvalidArgument) << "root";
    EXPECT_EQ(nccl_.Send(x, 4, kNcclFloat32, 3, r.comm, r.stream()), kNcclInvalidArgument) << "peer";
    EXPECT_EQ(nccl_.Send(x, 4, kNcclFloat32, 0, r.comm, r.stream()), kNcclInvalidUsage) << "to itself, outside a group";
    EXPECT_EQ(nccl_.GroupEnd(), kNcclInvalidUsage) << "that was not started";
    EXPECT_NE(std::string(nccl_.GetErrorString(kNcclInvalidUsage)), "");
    EXPECT_EQ(nccl_.CommInitRankConfig(&r.comm, 2, id_, 2, nullptr), kNcclInvalidArgument);
    EXPECT_EQ(nccl_.CommSplit(r.comm, -2, 0, &r.comm, nullptr), kNcclInvalidArgument);
  });
}

TEST_F(StandIn, AGroupFailsAsAWhole) {
  OnRanks(1, [&](Rank& r) {
    float x[4] = {}, y[4] = {};
    EXPECT_EQ(nccl_.GroupStart(), kNcclSuccess);
    EXPECT_EQ(nccl_.AllReduce(x, y, 4, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclSuccess);
    EXPECT_EQ(nccl_.AllReduce(x, y, 4, 99, kNcclSum, r.comm, r.stream()), kNcclInvalidArgument);
    EXPECT_EQ(nccl_.GroupEnd(), kNcclInvalidArgument);
    EXPECT_EQ(nccl_.AllReduce(x, y, 4, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclSuccess) << "it is forgotten";
  });
}

TEST_F(StandIn, StreamsOfAGroupAreRecordedTogether) {
  OnRanks(1, [&](Rank& r) {
    float x[4] = {}, y[4] = {}, z[4] = {};
    int beside = 0;
    captured_ = &beside;
    EXPECT_EQ(nccl_.GroupStart(), kNcclSuccess);
    EXPECT_EQ(nccl_.AllReduce(x, y, 4, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclSuccess);
    EXPECT_EQ(nccl_.AllReduce(x, z, 4, kNcclFloat32, kNcclSum, r.comm, &beside), kNcclSuccess);
    EXPECT_EQ(nccl_.GroupEnd(), kNcclInvalidUsage);
    captured_ = nullptr;
  });
}

TEST_F(StandIn, CommunicatorsAreNotMadeWhileTheirDeviceIsRecorded) {
  current = 0;
  kiln_nccl_comm comm = nullptr;
  recorded = true;
  EXPECT_EQ(nccl_.CommInitRankConfig(&comm, 1, id_, 0, nullptr), kNcclUnhandledCudaError);
  recorded = false;
  kiln_nccl_config config = {};
  EXPECT_EQ(nccl_.CommInitRankConfig(&comm, 1, id_, 0, &config), kNcclInvalidArgument) << "a config without its magic";
}

TEST_F(StandIn, RanksThatDoNotAgreeBreakTheCommunicator) {
  for (const int what : {0, 1, 2}) {
    nccl_.GetUniqueId(&id_);
    OnRanks(2, [&](Rank& r) {
      float x[8] = {}, y[8] = {};
      const size_t count = what == 0 && r.rank ? 3 : 4;
      const int type = what == 1 && r.rank ? kNcclInt32 : kNcclFloat32, op = what == 2 && r.rank ? kNcclProd : kNcclSum;
      nccl_.AllReduce(x, y, count, type, op, r.comm, r.stream());
      while (StateOf(r) == kNcclSuccess) std::this_thread::yield();
      EXPECT_EQ(StateOf(r), kNcclInvalidUsage) << what;
      EXPECT_EQ(nccl_.AllReduce(x, y, 4, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclInvalidUsage) << "broken";
    });
  }
}

TEST_F(StandIn, OthersHearOfAnAbort) {
  OnRanks(2, [&](Rank& r) {
    if (r.rank == 1) return;
    float x[4] = {};
    nccl_.AllReduce(x, x, 4, kNcclFloat32, kNcclSum, r.comm, r.stream());
    EXPECT_EQ(StateOf(r), kNcclRemoteError);
  });
}

TEST_F(StandIn, NothingIsCalledBehindTheEnd) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      current = rank;
      int device = rank;
      float x[4] = {};
      kiln_nccl_comm comm = nullptr;
      ASSERT_EQ(nccl_.CommInitRankConfig(&comm, 2, id_, rank, nullptr), kNcclSuccess);
      EXPECT_EQ(nccl_.CommFinalize(comm), kNcclSuccess);
      EXPECT_EQ(nccl_.AllReduce(x, x, 4, kNcclFloat32, kNcclSum, comm, &device), kNcclInvalidArgument) << "finalized";
      EXPECT_EQ(nccl_.CommDestroy(comm), kNcclSuccess);
      EXPECT_EQ(nccl_.AllReduce(x, x, 4, kNcclFloat32, kNcclSum, comm, &device), kNcclInvalidArgument) << "destroyed";
      EXPECT_EQ(nccl_.CommAbort(comm), kNcclInvalidArgument);
    });
  for (std::thread& t : threads) t.join();
}

// A communicator that does not block is in progress until it is there, and until each call is on its stream.
TEST_F(StandIn, CommunicatorsThatDoNotBlockAreAskedFirst) {
  kiln_nccl_config config = {sizeof config,       KILN_NCCL_MAGIC,     KILN_NCCL_OLDEST,    0,
                             KILN_NCCL_UNDEFINED, KILN_NCCL_UNDEFINED, KILN_NCCL_UNDEFINED, nullptr,
                             KILN_NCCL_UNDEFINED};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      current = rank;
      Rank r = {rank, nullptr, rank};
      kiln_nccl_config mine = config;
      float x[4] = {1, 2, 3, 4};
      EXPECT_EQ(nccl_.CommInitRankConfig(&r.comm, 2, id_, rank, &mine), kNcclInProgress);
      while (StateOf(r) == kNcclInProgress) std::this_thread::yield();
      EXPECT_EQ(nccl_.AllReduce(x, x, 4, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclInProgress);
      EXPECT_EQ(nccl_.AllReduce(x, x, 4, kNcclFloat32, kNcclSum, r.comm, r.stream()), kNcclInvalidArgument)
          << "before the previous call returned";
      while (StateOf(r) == kNcclInProgress) std::this_thread::yield();
      EXPECT_EQ(x[3], 8);
      kiln_nccl_comm odd = nullptr;
      EXPECT_EQ(nccl_.CommSplit(r.comm, rank == 1 ? 0 : kNcclNoColor, 0, &odd, &mine), kNcclInProgress);
      while (StateOf(r) == kNcclInProgress) std::this_thread::yield();
      EXPECT_EQ(odd != nullptr, rank == 1);
      if (odd) nccl_.CommAbort(odd);
      EXPECT_EQ(nccl_.CommFinalize(r.comm), kNcclInProgress);
      while (StateOf(r) == kNcclInProgress) std::this_thread::yield();
      EXPECT_EQ(nccl_.CommDestroy(r.comm), kNcclSuccess);
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace kiln
