// One set of weights for all entries of a library: found once, swapped for all at once.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kiln/kiln_host.h"
#include "layers.h"
#include "safetensors_image.h"

namespace {

using M = layers;

std::string File(const char* name, float v) {
  return Write(name, Image({{"params.scale", "F32", "3", std::vector<float>(3, v)},
                            {"params.w", "F32", "4,3", std::vector<float>(12, v)},
                            {"params.b", "F32", "3", std::vector<float>(3, v)}}));
}

// With inputs of 1 and weights of v: 5v, and 4v^2.
float All(const M::Weights& w) {
  M::Context context;
  const float x[2][4] = {{1, 1, 1, 1}, {1, 1, 1, 1}};
  float y[2][3];
  return M::all::run(context, w, x, y).ok() ? y[1][2] : -1;
}

float One(const M::Weights& w) {
  M::Context context;
  M::one::Inputs inputs;
  const float x[4] = {1, 1, 1, 1};
  float y[3];
  inputs.x = x;
  M::one::Results results;
  results.y = y;
  return M::one::run(context, w, inputs, results).ok() ? y[2] : -1;
}

TEST(Entries, ShareASetOfWeights) {
  M::Weights w(File("layers_2.safetensors", 2).c_str());
  ASSERT_TRUE(w.ok()) << w.error();
  EXPECT_EQ(All(w), 10);
  EXPECT_EQ(One(w), 16);
  EXPECT_TRUE(w.Swap(M::Weights(File("layers_3.safetensors", 3).c_str())));
  EXPECT_EQ(All(w), 15);
  EXPECT_EQ(One(w), 36);
  M::Context context;
  const float x[4] = {1, 2, 3, 4};
  float y[4];
  ASSERT_TRUE(M::none::run(context, x, y).ok());  // takes none
  EXPECT_EQ(y[3], 8);
}

TEST(Entries, NeedTheWeightsOfAll) {
  const std::string image = Image({{"params.w", "F32", "4,3", std::vector<float>(12, 1)}});
  M::Weights w(image.data(), image.size());
  EXPECT_FALSE(w.ok());
  EXPECT_STREQ(w.error(), "'params.b' is missing: F32[3]");
}

TEST(Entries, SwapWhileBothRun) {
  M::Weights w(File("layers_1.safetensors", 1).c_str());
  const std::string fresh[] = {File("layers_2.safetensors", 2), File("layers_1.safetensors", 1)};
  std::atomic<bool> stop = false, wrong = false;
  std::thread a([&] {
    while (!stop)
      if (const float y = All(w); y != 5 && y != 10) wrong = true;
  });
  std::thread b([&] {
    while (!stop)
      if (const float y = One(w); y != 4 && y != 16) wrong = true;
  });
  for (int k = 0; k < 200; ++k) ASSERT_TRUE(w.Swap(M::Weights(fresh[k % 2].c_str())));
  stop = true;
  a.join();
  b.join();
  EXPECT_FALSE(wrong);
}

TEST(Entries, TakeWeightsThatAnyOpened) {
  const kiln_model* all = layers_all_model();
  const kiln_model* one = layers_one_model();
  EXPECT_EQ(layers_none_model()->weights, nullptr);
  struct kiln_weights* weights = nullptr;
  ASSERT_EQ(all->weights->open(&weights, File("layers_4.safetensors", 4).c_str(), nullptr, 0), KILN_OK);
  float x[4] = {1, 1, 1, 1}, y[3];
  void *arguments[] = {x}, *results[] = {y};
  kiln_call call = {};
  call.arguments = arguments;
  call.results = results;
  EXPECT_EQ(one->weights->run(&call, weights), KILN_OK);
  EXPECT_EQ(y[0], 64);
  one->weights->close(weights);
}

}  // namespace
