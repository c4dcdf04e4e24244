// replay SEED...: the target on each seed and on a fixed number of mutations of it, the same on every run. What
// `./dev fuzz` does for hours with coverage, the suite does here for seconds without.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace {

void Feed(const std::string& s) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(s.data()), s.size()); }

}  // namespace

int main(int argc, char** argv) {
  constexpr int kMutations = 1500;
  std::vector<std::string> seeds;
  for (int k = 1; k < argc; ++k) {
    std::ifstream in(argv[k], std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: replay SEED...\n");
    return 2;
  }
  std::mt19937_64 rng(1);
  long fed = 0;
  for (const std::string& seed : seeds) {
    Feed(seed);
    for (int m = 0; m < kMutations; ++m, ++fed) {
      std::string s = seed;
      for (int edits = 1 + static_cast<int>(rng() % 4); edits-- > 0 && !s.empty();) {
        const size_t at = rng() % s.size(), n = 1 + rng() % 12;
        switch (rng() % 5) {
          case 0:
            s[at] = static_cast<char>(rng());
            break;
          case 1:
            s.erase(at, n);
            break;
          case 2:
            s.insert(at, s.substr(rng() % s.size(), n));
            break;
          case 3:
            s[at] = "0123456789-{}[]()<>,%=\"x?:"[rng() % 26];
            break;
          default: {
            const std::string& other = seeds[rng() % seeds.size()];
            if (!other.empty()) s.replace(at, n, other.substr(rng() % other.size(), n));
          }
        }
      }
      if (rng() % 8 == 0) s.resize(rng() % (s.size() + 1));
      Feed(s);
    }
  }
  std::printf("%ld inputs\n", fed);
  return 0;
}
