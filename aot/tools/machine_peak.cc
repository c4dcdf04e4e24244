#include "aot/tools/machine_peak.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace kiln {
namespace {

constexpr int kRounds = 1 << 17, kChains = 10;  // chains hide the latency of an addition

// `kChains` sums in registers to which products are added; returns the flops that were done. Sums are others at each
// step, as those of a model are: processors run faster while all bits stay as they are.
#define MULTIPLY_ADD_LOOP(name, target_features, vector, set, fma, lanes)                                      \
  __attribute__((target(target_features))) double name(float* keep) {                                          \
    vector sum[kChains];                                                                                       \
    const vector a = set(-1.0f), b = set(0.71828f);                                                            \
    _Pragma("GCC unroll 16") for (int c = 0; c < kChains; ++c) sum[c] = set(1.3719f * static_cast<float>(c));  \
    for (int k = 0; k < kRounds; ++k) _Pragma("GCC unroll 16") for (int c = 0; c < kChains; ++c) sum[c] = fma; \
    vector all = sum[0];                                                                                       \
    _Pragma("GCC unroll 16") for (int c = 1; c < kChains; ++c) all = all + sum[c];                             \
    std::memcpy(keep, &all, sizeof(vector));                                                                   \
    return 2.0 * lanes * kChains * kRounds;                                                                    \
  }
MULTIPLY_ADD_LOOP(MultiplyAdd512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps(sum[c], a, b), 16)
MULTIPLY_ADD_LOOP(MultiplyAdd256, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps(sum[c], a, b), 8)
MULTIPLY_ADD_LOOP(MultiplyAdd128, "sse2", __m128, _mm_set1_ps, _mm_add_ps(_mm_mul_ps(sum[c], a), b), 4)
#undef MULTIPLY_ADD_LOOP

double MultiplyAdd() {
  alignas(64) float keep[16];
  const double flops = __builtin_cpu_supports("avx512f") ? MultiplyAdd512(keep)
                       : __builtin_cpu_supports("fma")   ? MultiplyAdd256(keep)
                                                         : MultiplyAdd128(keep);
  __asm__ volatile("" : : "r"(keep) : "memory");
  return flops;
}

// The best of several tries, in billions of what `work` returns in a second.
double Best(int threads, const std::function<double(int)>& work) {
  constexpr int kTries = 12;
  double best = 0;
  for (int k = 0; k < kTries; ++k) {
    std::vector<double> done(static_cast<size_t>(threads));
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { done[static_cast<size_t>(t)] = work(t); });
    done[0] = work(0);
    for (std::thread& t : others) t.join();
    const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - start;
    double sum = 0;
    for (double d : done) sum += d;
    best = std::max(best, sum / ns.count());
  }
  return best;
}

}  // namespace

Peaks MeasurePeaks(int threads) {
  constexpr size_t kBytes = size_t{64} << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  const size_t part = kBytes / static_cast<size_t>(threads);
  Peaks out;
  out.gflops = Best(threads, [](int) { return MultiplyAdd(); });
  out.gbytes = Best(threads, [&](int t) {
    std::memcpy(to.data() + part * static_cast<size_t>(t), from.data() + part * static_cast<size_t>(t), part);
    return 2.0 * static_cast<double>(part);
  });
  return out;
}

}  // namespace kiln
