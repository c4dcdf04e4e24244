// Runs ResNet-50 with weights that the program owns: here, seeded ones of sensible size; a real program maps a file.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "examples/resnet50/weights.h"
#include "resnet50_c.h"

int main() {
  const Weights weights;
  std::vector<float> logits(RESNET50_RESULT_RESULT0_COUNT);
  void* results[] = {logits.data()};
  const kiln_arena arena = {std::aligned_alloc(RESNET50_ALIGNMENT, RESNET50_ARENA_BYTES), RESNET50_ARENA_BYTES};
  const auto start = std::chrono::steady_clock::now();
  const int status = resnet50_run(weights.arguments(), results, arena, nullptr);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::free(arena.data);
  if (status != RESNET50_OK) {
    std::fprintf(stderr, "%s\n", resnet50_status_text(status));
    return 1;
  }
  int best = 0;
  for (int k = 1; k < 1000; ++k)
    if (logits[k] > logits[best]) best = k;
  std::printf("class %d, score %.3f, %.1f ms, arena %.1f MB\n", best, logits[best], ms, RESNET50_ARENA_BYTES / 1e6);
  return std::isfinite(logits[best]) ? 0 : 1;
}
