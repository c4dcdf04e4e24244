// Weights from safetensors files: found by every name, refused with a reason, swapped while threads run.
#include "weights.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "safetensors_image.h"

namespace {

using M = weights;

std::vector<Entry> Same(float v) {
  return {{"params.layers.0.w", "F32", "4, 3", std::vector<float>(12, v)},
          {"params.layers.0.b", "F32", "3", std::vector<float>(3, v)},
          {"params.head", "F32", "3,2", std::vector<float>(6, v)},
          {"of_another_model", "I8", "4", {0}}};
}

// What a run gives if all weights and inputs are v and 1: hidden 5v, logits 15v^2.
bool Gives(const M::Weights& w, float v) {
  M::Context context;
  const float x[2][4] = {{1, 1, 1, 1}, {1, 1, 1, 1}};
  float hidden[2][3];
  std::array<std::array<float, 2>, 2> logits;
  if (!M::run(context, w, x, hidden, logits).ok()) return false;
  return hidden[1][2] == 5 * v && logits[1][1] == 15 * v * v;
}

std::string WhyNot(const std::string& image) {
  M::Weights w(image.data(), image.size());
  EXPECT_FALSE(w.ok());
  EXPECT_EQ(w.status().code, WEIGHTS_WEIGHTS);
  return w.error();
}

TEST(Weights, FoundByEveryName) {
  for (const char* head : {"params.head", "params['head']", "params_head", "head", "p\\u0061rams.h\\u0065ad"}) {
    std::vector<Entry> entries = Same(2);
    entries[2].name = head;
    const std::string path = Write("w.safetensors", Image(entries));
    M::Weights w(path.c_str());
    ASSERT_TRUE(w.ok()) << head << ": " << w.error();
    EXPECT_STREQ(w.error(), "");
    EXPECT_TRUE(Gives(w, 2)) << head;
    EXPECT_TRUE(w.Verify().ok());
  }
}

TEST(Weights, NestedInputs) {
  const std::string image = Image(Same(3));
  M::Weights w(image.data(), image.size());
  ASSERT_TRUE(w.ok()) << w.error();
  M::Context context;
  M::Inputs inputs;
  const std::vector<float> x(8, 1);
  inputs.x = x;
  M::Result_hidden::Owned hidden;
  M::Result_logits::Owned logits;
  ASSERT_TRUE(M::run(context, w, inputs, {hidden, logits}).ok());
  EXPECT_EQ(hidden(1, 2), 15);
  EXPECT_EQ(logits(0, 1), 135);
  // The same with all arguments passed.
  M::Arguments all;
  const std::vector<float> head(6, 3), b(3, 3);
  const float k[4][3] = {{3, 3, 3}, {3, 3, 3}, {3, 3, 3}, {3, 3, 3}};
  all.params.head = head;
  all.params.layers._0.b = b;
  all.params.layers._0.w = k;
  all.x = x;
  hidden(1, 2) = 0;
  ASSERT_TRUE(M::run(context, all, {hidden, logits}).ok());
  EXPECT_EQ(hidden(1, 2), 15);
}

TEST(Weights, WhatIsWrongIsSaid) {
  auto with = [](size_t k, auto change) {
    std::vector<Entry> entries = Same(1);
    change(entries[k]);
    return WhyNot(Image(entries));
  };
  EXPECT_EQ(with(2, [](Entry& e) { e.name = "tail"; }), "'params.head' is missing: F32[3, 2]");
  EXPECT_EQ(with(2, [](Entry& e) { e.dtype = "F16"; }), "'params.head' is not F32[3, 2]");
  EXPECT_EQ(with(2, [](Entry& e) { e.shape = "2, 3"; }), "'params.head' is not F32[3, 2]");
  EXPECT_EQ(with(2, [](Entry& e) { e.shape = "6"; }), "'params.head' is not F32[3, 2]");
  EXPECT_EQ(with(2, [](Entry& e) { e.values.pop_back(); }), "'params.head' is not F32[3, 2]");
  EXPECT_EQ(with(3, [](Entry& e) { e.name = "head"; }), "'params.head' is there twice");
  EXPECT_EQ(with(0, [](Entry& e) { e.shape = "4, -3"; }), "the header is not that of a safetensors file");
  const std::string image = Image(Same(1));
  EXPECT_EQ(WhyNot(image.substr(0, image.size() - 5)), "'params.head' lies behind the end of the file");
  EXPECT_EQ(WhyNot(image.substr(0, 40)), "not a safetensors file");
  EXPECT_EQ(WhyNot(""), "not a safetensors file");
}

TEST(Weights, FilesThatAreNoneAreNamed) {
  M::Weights none("/nowhere/w.safetensors");
  EXPECT_STREQ(none.error(), "/nowhere/w.safetensors: there is no such file");
  M::Weights folder("/");
  EXPECT_FALSE(folder.ok());
  EXPECT_FALSE(Gives(none, 1));
  char small[8] = "xxxxxxx";
  kiln_weights* w;
  EXPECT_EQ(weights_weights_open(&w, "/nowhere", small, sizeof small), WEIGHTS_WEIGHTS);
  EXPECT_STREQ(small, "/nowher");
}

// Every byte of the header changed: refused with a message, or an array that was not needed.
TEST(Weights, DamagedHeadersAreRefused) {
  const std::string image = Image(Same(1));
  uint64_t header;
  std::memcpy(&header, image.data(), 8);
  int refused = 0;
  for (size_t k = 0; k < 8 + header; ++k)
    for (const char c : {'\0', '"', '{', '}', '9', '\\', '\xff'}) {
      std::string bad = image;
      bad[k] = c;
      M::Weights w(bad.data(), bad.size());
      refused += !w.ok();
      EXPECT_TRUE(w.ok() || *w.error()) << k;
    }
  EXPECT_GT(refused, 500);
}

struct Store {
  std::vector<float> values = std::vector<float>(12, 4);
  int released = 0;
  static const void* Tensor(void* self, const char* name, int64_t bytes) {
    return std::strcmp(name, "params.head") || bytes == 24 ? static_cast<Store*>(self)->values.data() : nullptr;
  }
  static void Release(void* self) { ++static_cast<Store*>(self)->released; }
};

TEST(Weights, FromTheHostsOwnMemory) {
  Store store;
  {
    M::Weights w(kiln_weights_source{&store, Store::Tensor, Store::Release});
    ASSERT_TRUE(w.ok()) << w.error();
    EXPECT_TRUE(Gives(w, 4));
    const std::string image = Image(Same(5));
    EXPECT_FALSE(w.Swap(M::Weights("/nowhere")));
    EXPECT_EQ(store.released, 0);
    EXPECT_TRUE(w.Swap(M::Weights(image.data(), image.size())));
    EXPECT_EQ(store.released, 1);
    EXPECT_TRUE(Gives(w, 5));
  }
  EXPECT_EQ(store.released, 1);
}

// A run that saw parts of two sets would give neither's results.
TEST(Weights, SwappedUnderThreads) {
  std::vector<std::string> paths;
  for (int v = 1; v <= 4; ++v)
    paths.push_back(Write(("v" + std::to_string(v)).c_str(), Image(Same(static_cast<float>(v)))));
  M::Weights w(paths[0].c_str());
  ASSERT_TRUE(w.ok()) << w.error();
  std::atomic<bool> stop{false};
  std::atomic<int> runs{0}, torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      M::Context context;
      const float x[2][4] = {{1, 1, 1, 1}, {1, 1, 1, 1}};
      float hidden[2][3], logits[2][2];
      while (!stop) {
        if (!M::run(context, w, x, hidden, logits).ok()) ++torn;
        const float v = hidden[0][0] / 5;
        if (hidden[1][2] != 5 * v || logits[1][1] != 15 * v * v || v < 1 || v > 4) ++torn;
        ++runs;
      }
    });
  for (int k = 0; k < 2000; ++k) ASSERT_TRUE(w.Swap(M::Weights(paths[static_cast<size_t>(k) % 4].c_str())));
  while (runs < 1000) std::this_thread::yield();
  stop = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
