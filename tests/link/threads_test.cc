// One model from eight threads at once, each with its own context, under ThreadSanitizer: the same results everywhere.
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "digits.h"

int main() {
  std::vector<std::thread> threads;
  float scores[8][10];
  bool ok[8];
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      float pixels[64];
      for (int k = 0; k < 64; ++k) pixels[k] = static_cast<float>((k * 7) % 17);
      digits_pool* pool = t % 2 ? digits_pool_create(2) : nullptr;
      digits::Context context(pool);
      ok[t] = true;
      for (int k = 0; k < 200; ++k)
        ok[t] = digits::run(context, digits::Argument_arg0::Unchecked(pixels), scores[t]).ok() && ok[t];
      digits_pool_destroy(pool);
    });
  for (std::thread& t : threads) t.join();
  for (int t = 0; t < 8; ++t)
    if (!ok[t] || std::memcmp(scores[t], scores[0], sizeof scores[0])) {
      std::printf("thread %d differs\n", t);
      return 1;
    }
  return 0;
}
