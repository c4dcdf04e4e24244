// A library with two entries: results, one arena, one pool in two threads, and the entries as data.
#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "entries_c.h"
#include "gtest/gtest.h"
#include "kiln/kiln_host.h"
#include "language_model.h"
#include "language_model_reference.h"

namespace {

using M = language_model;

TEST(Entries, ComputeAndShareAContext) {
  M::Context context;
  int32_t words[8] = {250, 17, 17, 0, 255, 64, 3, 90}, word[1] = {77};
  float state[kWidth], best[8], next[1], want[kWidth], want_best[8];
  for (int round = 0; round < 3; ++round) {
    words[0] = word[0] = 77 + round;
    ASSERT_TRUE(M::prefill::run(context, words, state, best).ok());
    Prefill(words, 8, want, want_best);
    EXPECT_EQ(std::memcmp(state, want, sizeof state), 0);
    EXPECT_EQ(std::memcmp(best, want_best, sizeof best), 0);
    M::decode::Arguments arguments;
    arguments.word = word;
    arguments.state = state;
    M::decode::Results results;
    results.best = next;
    ASSERT_TRUE(M::decode::run(context, arguments, results).ok());
    EXPECT_EQ(next[0], Decode(word[0], want));
    EXPECT_EQ(std::memcmp(state, want, sizeof state), 0);
  }
}

TEST(Entries, NeedTheArenaOfTheLargest) {
  static_assert(M::kArenaBytes == M::prefill::kArenaBytes && M::decode::kArenaBytes < M::prefill::kArenaBytes &&
                    M::decode::kArenaBytes > 0,
                "the largest");
  alignas(64) static unsigned char little[M::decode::kArenaBytes];
  M::Context context(kiln_arena{little, sizeof little});
  int32_t words[8] = {}, word[1] = {5};
  float state[kWidth] = {}, best[8], next[1];
  EXPECT_TRUE(M::decode::run(context, word, state, next).ok());
  EXPECT_EQ(M::prefill::run(context, words, state, best).code, LANGUAGE_MODEL_ARENA_SIZE);
}

TEST(Entries, RunAtOnceWithOnePool) {
  kiln_pool* pool = language_model_pool_create(3);
  ASSERT_NE(pool, nullptr);
  const auto right = [&](int seed, bool prefill) {
    M::Context context(pool);
    int32_t words[8], word[1];
    float state[kWidth] = {}, best[8], next[1], want[kWidth] = {}, want_best[8];
    for (int round = 0; round < 100; ++round) {
      for (int k = 0; k < 8; ++k) words[k] = (seed + round * 8 + k * k) % kWords;
      word[0] = words[3];
      if (prefill) {
        Prefill(words, 8, want, want_best);
        if (!M::prefill::run(context, words, state, best).ok() || std::memcmp(best, want_best, sizeof best))
          return false;
      } else {
        const float want_next = Decode(word[0], want);
        if (!M::decode::run(context, word, state, next).ok() || next[0] != want_next) return false;
      }
      if (std::memcmp(state, want, sizeof state)) return false;
    }
    return true;
  };
  bool first = false, second = false;
  std::thread a([&] { first = right(1, true); });
  std::thread b([&] { second = right(2, false); });
  a.join();
  b.join();
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
  language_model_pool_destroy(pool);
}

TEST(Entries, AreModelsForHosts) {
  const kiln_model_list* list = language_model_models();
  ASSERT_EQ(list->count, 2u);
  EXPECT_EQ(list->models[0], language_model_prefill_model());
  EXPECT_EQ(list->models[1], language_model_decode_model());
  EXPECT_EQ(kiln_find_entry(list, "language_model", "train"), nullptr);
  EXPECT_EQ(kiln_find_model(list, "language_model_decode"), list->models[1]);
  const kiln_model* decode = kiln_find_entry(list, "language_model", "decode");
  ASSERT_NE(decode, nullptr);
  EXPECT_EQ(kiln_model_problem(decode), nullptr);
  EXPECT_EQ(decode->version, 2u);
  EXPECT_STREQ(kiln_model_entry(decode), "decode");
  EXPECT_STREQ(decode->library, "language_model");
  EXPECT_EQ(decode->arena_bytes, static_cast<int64_t>(M::decode::kArenaBytes));
  EXPECT_EQ(decode->pool_create, list->models[0]->pool_create);
  ASSERT_EQ(decode->arguments, 2);
  EXPECT_STREQ(kiln_argument(decode, decode->variant, 1)->name, "state");

  kiln_context context;
  ASSERT_EQ(kiln_context_create(&context, decode, nullptr), KILN_OK);
  int32_t word[1] = {9};
  float state[kWidth] = {}, next[1], want[kWidth] = {};
  const int64_t one[] = {1}, width[] = {kWidth};
  const kiln_view in[] = {{word, KILN_TYPE_S32, 1, one, nullptr}, {state, KILN_TYPE_F32, 1, width, nullptr}};
  const kiln_view out[] = {{}, {next, KILN_TYPE_F32, 1, one, nullptr}};
  char why[256];
  EXPECT_EQ(kiln_context_run(&context, 0, in, out, why, sizeof why), KILN_OK) << why;
  EXPECT_EQ(next[0], Decode(9, want));
  kiln_context_destroy(&context);
}

TEST(Entries, FromC) { EXPECT_STREQ(WhatIsWrongInC(), ""); }

}  // namespace
