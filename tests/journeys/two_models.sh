# what: two libraries in a C++ program, run at once on one pool of threads
# packages: cmake g++ make pkg-config
# kiln: deb
# expects: a 7, and 16 tokens as without the pool
kiln compile /examples/digits/digits.mlir --name digits -o build
kiln compile /examples/decoder/decoder.mlir --name decoder -o build
cat > app.cc <<'END'
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "decoder.h"
#include "digits.h"
#include "/examples/digits/image.h"

std::vector<int32_t> Tokens(kiln_pool* pool) {
  decoder::Context context(pool);
  std::vector<float> cache(DECODER_ARGUMENT_ARG2_COUNT), logits(DECODER_RESULT_RESULT0_COUNT);
  std::vector<int32_t> tokens = {1};
  for (int32_t k = 0; k < 16; ++k) {
    const int32_t token[] = {tokens.back()}, at[] = {k};
    if (!decoder::run(context, token, at, cache, logits)) return {};
    tokens.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  return tokens;
}

int Digit(const float (&pixels)[64], kiln_pool* pool) {
  digits::Context context(pool);
  float scores[10];
  if (!digits::run(context, digits::Argument_arg0::Unchecked(pixels), scores)) return -1;
  return static_cast<int>(std::max_element(scores, std::end(scores)) - scores);
}

int main() {
  float pixels[64];
  std::string error;
  if (!ReadImage("/examples/digits/digit_7.pgm", pixels, &error)) return std::puts(error.c_str()), 1;
  const std::vector<int32_t> alone = Tokens(nullptr);
  kiln_pool* pool = digits_pool_create(3);  // a pool serves any model
  bool same = true, seven = true;
  std::thread speaks([&] {
    for (int k = 0; k < 100; ++k) same = same && Tokens(pool) == alone;
  });
  std::thread reads([&] {
    for (int k = 0; k < 1000; ++k) seven = seven && Digit(pixels, pool) == 7;
  });
  speaks.join();
  reads.join();
  digits_pool_destroy(pool);
  std::printf("%s, and %zu tokens %s\n", seven ? "a 7" : "not always a 7", alone.size() - 1,
              same ? "as without the pool" : "that the pool changes");
  return 0;
}
END
g++ -std=c++17 -O2 -Wall -Wextra -Werror -Ibuild app.cc build/libdigits.a build/libdecoder.a -lm -lpthread -o app
./app
