// The classifier is right on at least 97 % of the images held back from training.
#include "digits.h"

#include <cstdio>
#include <vector>

#include "examples/digits/image.h"
#include "gtest/gtest.h"

namespace {

TEST(Digits, HeldOutAccuracy) {
  FILE* f = std::fopen("examples/digits/heldout.bin", "rb");
  ASSERT_NE(f, nullptr);
  unsigned char row[65];
  digits::Context context;
  int right = 0, total = 0;
  while (std::fread(row, 1, 65, f) == 65) {
    float pixels[64], scores[10];
    for (int k = 0; k < 64; ++k) pixels[k] = row[k];
    ASSERT_TRUE(digits::run(context, digits::Argument_arg0::Unchecked(pixels), scores).ok());
    int best = 0;
    for (int k = 1; k < 10; ++k)
      if (scores[k] > scores[best]) best = k;
    right += best == row[64];
    ++total;
  }
  std::fclose(f);
  EXPECT_EQ(total, 360);
  EXPECT_GE(right, 0.97 * total) << right << " of " << total;
}

TEST(Digits, ReadsAnImageFile) {
  float pixels[64], scores[10];
  std::string error;
  ASSERT_TRUE(ReadImage("examples/digits/digit_7.pgm", pixels, &error)) << error;
  digits::Context context;
  ASSERT_TRUE(digits::run(context, digits::Argument_arg0::Unchecked(pixels), scores).ok());
  int best = 0;
  for (int k = 1; k < 10; ++k)
    if (scores[k] > scores[best]) best = k;
  EXPECT_EQ(best, 7);
  EXPECT_FALSE(ReadImage("examples/digits/heldout.bin", pixels, &error));
}

TEST(Digits, ErrorsAreValues) {
  digits::Context context;
  float scores[10];
  const digits::Status s = digits::run(context, digits::Argument_arg0(), scores);
  EXPECT_FALSE(s.ok());
  EXPECT_STREQ(s.text(), "digits: a buffer, a pool's function or the comm is NULL");
  EXPECT_EQ(digits::Argument_arg0::Of(scores, 10).data(), nullptr);
}

}  // namespace
