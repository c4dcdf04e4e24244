// Generates tokens with a decoder whose key/value cache is donated: each step updates it in place.
#include <cstdio>
#include <cstring>
#include <vector>

#include "decoder.h"

int main() {
  alignas(64) static float cache[DECODER_ARGUMENT_ARG2_COUNT];
  alignas(64) static float logits[DECODER_RESULT_RESULT0_COUNT];
  std::memset(cache, 0, sizeof cache);
  decoder::Context context;
  alignas(64) int32_t token[1] = {1};
  for (int32_t position = 0; position < 16; ++position) {
    alignas(64) int32_t at[1] = {position};
    const decoder::Status s = decoder::run(context, token, at, cache, logits);
    if (!s) {
      std::fprintf(stderr, "%s\n", s.text());
      return 1;
    }
    int32_t best = 0;
    for (int32_t k = 1; k < static_cast<int32_t>(DECODER_RESULT_RESULT0_COUNT); ++k)
      if (logits[k] > logits[best]) best = k;
    token[0] = best;
    std::printf("%d ", best);
  }
  std::printf("\n");
  // The cache was written where the caller keeps it: position 0 of the first layer's keys is not zero any more, and the
  // positions that were not reached are.
  float first = 0, last = 0;
  for (int k = 0; k < 64; ++k) {
    first += cache[k] * cache[k];
    last += cache[31 * 64 + k] * cache[31 * 64 + k];
  }
  if (!(first > 0) || last != 0) {
    std::fprintf(stderr, "the cache was not updated in place\n");
    return 1;
  }
  return 0;
}
