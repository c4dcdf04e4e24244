// Reads an 8 x 8 image (PGM, text or binary) and prints the digit on it.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "digits.h"
#include "image.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: digits IMAGE.pgm [--stats]\n");
    return 2;
  }
  float pixels[64];
  std::string error;
  if (!ReadImage(argv[1], pixels, &error)) {
    std::fprintf(stderr, "%s: %s\n", argv[1], error.c_str());
    return 1;
  }
  digits::Context context;
  float scores[10];
  const auto start = std::chrono::steady_clock::now();
  const digits::Status status = digits::run(context, digits::Argument_arg0::Unchecked(pixels), scores);
  const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  if (!status) {
    std::fprintf(stderr, "%s\n", status.text());
    return 1;
  }
  int best = 0;
  for (int k = 1; k < 10; ++k)
    if (scores[k] > scores[best]) best = k;
  std::printf("%d\n", best);
  if (argc > 2 && !std::strcmp(argv[2], "--stats")) {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    std::printf("probability %.4f, %.1f us for the first run, arena %zu bytes, %ld KB resident at most\n", scores[best],
                us, digits::kArenaBytes, usage.ru_maxrss);
  }
  return 0;
}
