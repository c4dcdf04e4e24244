// How long devices wait for others that have not come.
#include "aot/tools/timed_comm.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::Ge;
using testing::SizeIs;

// Notes which of its functions ran.
class FakeComm {
 public:
  const kiln_comm& comm() const { return comm_; }

  std::string called;
  int32_t status = 0;

 private:
  int32_t Note(const char* what) {
    called += what;
    return status;
  }
  static FakeComm& Of(void* self) { return *static_cast<FakeComm*>(self); }

  kiln_comm comm_ = {
      this,
      3,
      [](void* self, int64_t, const int64_t*, int64_t, const void*, void*, int64_t) {
        return Of(self).Note("gather ");
      },
      [](void* self, int64_t, int64_t, const void*, int64_t) { return Of(self).Note("send "); },
      [](void* self, int64_t, int64_t, void*, int64_t) { return Of(self).Note("receive "); },
      [](void* self, int64_t, int32_t) { Of(self).Note("fail "); },
      [](void* self, int64_t, const kiln_exchange*, const int64_t*, const void* const*, void* const*) {
        return Of(self).Note("exchange ");
      },
      [](void* self, int64_t, const kiln_exchange*, const int64_t*, const void* const*, void* const*) -> void* {
        return Of(self).Note("offer ") ? nullptr : self;
      },
      [](void* self, int64_t, void* offered, const kiln_exchange*, void* const*) {
        return Of(self).Note(offered == self ? "take " : "take of another ");
      },
  };
};

const int64_t kGroup[] = {0, 3}, kBytes[] = {64};

kiln_exchange AllReduceOf(const int64_t* bytes) {
  kiln_exchange x = {};
  x.kind = KILN_ALL_REDUCE;
  x.members = 2;
  x.arrays = 1;
  x.bytes = bytes;
  return x;
}

TEST(TimedComm, EachCallIsMetAndReachesTheComm) {
  FakeComm real;
  TimedComm timed(real.comm(), true);
  const kiln_comm& c = *timed.face();
  const kiln_exchange x = AllReduceOf(kBytes);
  c.gather(c.self, 3, kGroup, 2, nullptr, nullptr, 8);
  c.send(c.self, 3, 1, nullptr, 8);
  c.receive(c.self, 3, 1, nullptr, 8);
  c.exchange(c.self, 3, &x, kGroup, nullptr, nullptr);
  EXPECT_EQ(real.called, "gather send receive exchange ");
  const std::vector<MetExchange> met = timed.Take();
  ASSERT_THAT(met, SizeIs(4));
  EXPECT_EQ(met[1].key, met[2].key);  // messages of a device
  EXPECT_NE(met[0].key, met[3].key);
  for (const MetExchange& m : met) {
    EXPECT_EQ(m.came, m.begin);
    EXPECT_LE(m.begin, m.end);
  }
  EXPECT_THAT(timed.Take(), SizeIs(0));
}

// An exchange that began early came with its offer, and is met once it is taken.
TEST(TimedComm, OffersAreMetWhenTheyAreTaken) {
  FakeComm real;
  TimedComm timed(real.comm(), true);
  const kiln_comm& c = *timed.face();
  const kiln_exchange x = AllReduceOf(kBytes);
  void* offered = c.offer(c.self, 3, &x, kGroup, nullptr, nullptr);
  ASSERT_NE(offered, nullptr);
  EXPECT_THAT(timed.Take(), SizeIs(0));
  c.exchange(c.self, 3, &x, kGroup, nullptr, nullptr);
  c.take(c.self, 3, offered, &x, nullptr);
  EXPECT_EQ(real.called, "offer exchange take ");
  const std::vector<MetExchange> met = timed.Take();
  ASSERT_THAT(met, SizeIs(2));
  EXPECT_EQ(met[0].key, met[1].key);
  EXPECT_LE(met[1].came, met[0].came);
  EXPECT_THAT(met[1], AllOf(Field(&MetExchange::begin, Ge(met[0].end)), Field(&MetExchange::spent, Ge(0))));
}

TEST(TimedComm, WhatFailsFails) {
  FakeComm real;
  real.status = 7;
  TimedComm timed(real.comm(), true);
  const kiln_comm& c = *timed.face();
  const kiln_exchange x = AllReduceOf(kBytes);
  EXPECT_EQ(c.exchange(c.self, 3, &x, kGroup, nullptr, nullptr), 7);
  EXPECT_EQ(c.offer(c.self, 3, &x, kGroup, nullptr, nullptr), nullptr);
  c.fail(c.self, 3, 7);
  EXPECT_EQ(real.called, "exchange offer fail ");
}

TEST(TimedComm, NothingBeginsEarlyWhereNothingMay) {
  FakeComm real;
  const TimedComm timed(real.comm(), false);
  EXPECT_EQ(timed.face()->offer, nullptr);
  EXPECT_EQ(timed.face()->take, nullptr);
}

TEST(TimedComm, WhoComesFirstWaits) {
  //                                key  came  begin end  spent
  EXPECT_THAT(LateUs({{MetExchange{1, 10, 10, 35, 25}}, {MetExchange{1, 30, 30, 36, 6}}}), ElementsAre(20, 0));
}

// The second exchange of a key is that of the others, whatever they met in between.
TEST(TimedComm, ExchangesOfAKeyAreInOrder) {
  EXPECT_THAT(LateUs({{MetExchange{1, 0, 0, 1, 1}, MetExchange{1, 10, 10, 35, 25}},
                      {MetExchange{1, 0, 0, 1, 1}, MetExchange{2, 5, 5, 8, 3}, MetExchange{1, 30, 30, 36, 6}}}),
              ElementsAre(20, 0));
}

// One that began early and is taken once all have come waits for nobody; one that is taken before, for the rest.
TEST(TimedComm, EarlyOnesWaitFromWhenTheyAreTaken) {
  EXPECT_THAT(LateUs({{MetExchange{1, 10, 50, 51, 2}}, {MetExchange{1, 30, 60, 61, 2}}}), ElementsAre(0, 0));
  EXPECT_THAT(LateUs({{MetExchange{1, 10, 25, 33, 8}}, {MetExchange{1, 30, 60, 61, 2}}}), ElementsAre(5, 0));
}

}  // namespace
}  // namespace kiln
