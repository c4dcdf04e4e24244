// How long devices wait for others that have not come.
#include "aot/tools/timed_comm.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

using testing::ElementsAre;

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
