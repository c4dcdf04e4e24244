// A library with several batch sizes whose weights come from a file.
#include "batch_weights.h"

#include <array>

#include "gtest/gtest.h"
#include "safetensors_image.h"

namespace {

using M = batch_weights;

TEST(BatchWeights, AreOneSetForAllSizes) {
  const std::string image = Image({{"params.w", "F32", "4,3", std::vector<float>(12, 2)},  //
                                   {"params.b", "F32", "3", std::vector<float>(3, 1)}});
  M::Weights weights(image.data(), image.size());
  ASSERT_TRUE(weights.ok()) << weights.error();
  M::Context context;
  const float two[2][4] = {{1, 1, 1, 1}, {2, 0, 0, 0}};
  float y[2][3] = {};
  ASSERT_TRUE(M::run(context, 2, weights, two, y).ok());
  EXPECT_EQ(y[0][2], 9);
  EXPECT_EQ(y[1][0], 5);
  const std::vector<float> five(20, 1);
  std::vector<float> z(15);
  M::Inputs inputs;
  inputs.x = five;
  ASSERT_TRUE(M::run(context, 5, weights, inputs, {z}).ok());
  EXPECT_EQ(z, std::vector<float>(15, 9));
  EXPECT_EQ(M::run(context, 2, weights, inputs, {z}).code, BATCH_WEIGHTS_EXTENT);
  EXPECT_EQ(M::run(context, 3, weights, inputs, {z}).code, BATCH_WEIGHTS_BATCH_SIZE);
  // Without the file: all arguments, as they nest.
  M::Arguments all;
  const std::array<float, 3> b = {0, 0, 4};
  const float w[4][3] = {{1}};
  all.params.b = b;
  all.params.w = w;
  all.x = two;
  ASSERT_TRUE(M::run(context, 2, all, {y}).ok());
  EXPECT_EQ(y[1][0], 2);
  EXPECT_EQ(y[1][2], 4);
}

}  // namespace
