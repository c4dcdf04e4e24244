// One library, several batch sizes: the entry picks the variant, extents are checked, sizes that it lacks are refused.
#include "batches.h"

#include <cstdio>
#include <type_traits>
#include <vector>

#include "tests/link/expect.h"

int main() {
  batches::Context context;
  for (std::int64_t n : batches::kBatchSizes) {
    std::vector<float> x(n * 4), y(n * 3);
    float sums[4];
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 7);
    Expect(batches::run(context, n, x, y, sums).ok(), "run");
    for (std::int64_t r = 0; r < n; ++r)
      for (int c = 0; c < 3; ++c) {
        float want = 0;
        for (int k = 0; k < 4; ++k) want += x[r * 4 + k] * static_cast<float>(3 * k + c + 1);
        Expect(y[r * 3 + c] == want, "product");
      }
    float want = 0;
    for (std::int64_t r = 0; r < n; ++r) want += x[r * 4 + 2];
    Expect(sums[2] == want, "column sums");
  }
  float x[8], y[6], sums[4];
  Expect(batches::run(context, 2, x, y, sums).code == BATCHES_BATCH_SIZE, "a size without a variant");
  Expect(batches::run(context, 4, x, y, sums).code == BATCHES_EXTENT, "an array of another extent");
  Expect(batches_run(3, nullptr, nullptr, {}, nullptr) == BATCHES_BATCH_SIZE, "the C entry refuses it too");
  // Nested, of what the program calls them; arrays of any rank.
  float rows[4][4] = {{1}, {0, 1}}, products[4][3], nested_sums[4];
  batches::Arguments args;
  args.x = rows;
  Expect(batches::run(context, 4, args, {products, nested_sums}).ok() && products[1][2] == 6 && nested_sums[1] == 1,
         "nested arguments");
  Expect(batches::run(context, 9, args, {products, nested_sums}).code == BATCHES_EXTENT, "nested, of another extent");
  args.x = {nullptr, 16};
  Expect(batches::run(context, 4, args, {products, nested_sums}).code == BATCHES_NULL_POINTER, "no memory");
  static_assert(std::is_same_v<batches::Result_column_sums, kiln::Array<float, 4>>, "a result of one size");
  Expect(batches::BatchFor(2) == 4 && batches::BatchFor(9) == 9 && batches::BatchFor(10) == 0, "batch for n");
  Expect(batches_argument_x_count(9) == 36 && batches_result_y_count(1) == 3, "counts");
  return failures != 0;
}
