// Runs that share a pool, under ThreadSanitizer: every unit of every kernel is computed once, whatever the numbers of
// threads, runs and units, and pools come and go.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "runtime_min/abi.h"

extern "C" {
kiln_pool* kiln_model_pool_create(int threads);
void kiln_model_pool_destroy(kiln_pool* pool);
void kiln_model_parallel(const kiln_machine* machine, void (*fn)(void*, int64_t, int64_t), void* args, int64_t units,
                         int64_t limit);
}

namespace {

constexpr int kKernels = 1500, kUnits = 200;

void Count(void* counts, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) ++static_cast<int*>(counts)[k];
}

bool Run(kiln_pool* pool, unsigned seed) {
  const kiln_machine machine = {pool, nullptr};
  std::mt19937 random(seed);
  std::vector<int> counts(kUnits), expected(kUnits);
  for (int k = 0; k < kKernels; ++k) {
    const int units = 1 + static_cast<int>(random() % kUnits), limit = static_cast<int>(random() % 9);
    kiln_model_parallel(&machine, Count, counts.data(), units, limit);
    for (int u = 0; u < units; ++u) ++expected[u];
    // Long enough for the pool's threads to fall asleep.
    if (random() % 300 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return counts == expected;
}

bool Runs(int threads, int runs) {
  kiln_pool* pool = kiln_model_pool_create(threads);
  std::vector<char> right(static_cast<size_t>(runs));
  std::vector<std::thread> callers;
  for (int r = 0; r < runs; ++r)
    callers.emplace_back([&, r] { right[static_cast<size_t>(r)] = Run(pool, static_cast<unsigned>(r)); });
  for (std::thread& t : callers) t.join();
  kiln_model_pool_destroy(pool);
  for (const char ok : right)
    if (!ok) return std::printf("%d runs on %d threads: a unit was left out or computed twice\n", runs, threads), false;
  return true;
}

}  // namespace

int main() {
  constexpr int kCases[][2] = {{1, 2}, {2, 1}, {2, 3}, {4, 1}, {8, 4}, {3, 1}};
  for (const auto& [threads, runs] : kCases)
    if (!Runs(threads, runs)) return 1;
  return 0;
}
