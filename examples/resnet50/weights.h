// Seeded weights for every argument of the model, in its order: the image first, then kernels and normalisations.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "resnet50_counts.inc"

class Weights {
 public:
  Weights() {
    uint64_t state = 0x9e3779b97f4a7c15ull;
    for (std::size_t k = 0; k < std::size(kArgumentCounts); ++k) {
      const std::size_t n = kArgumentCounts[k];
      auto* p = static_cast<float*>(std::aligned_alloc(64, (4 * n + 63) / 64 * 64));
      // Kernels are small; per-channel statistics are scale 1, offset 0, mean 0, variance 1, near enough.
      const float scale = n > 4096 ? 0.03f : 0.05f, base = n > 4096 || k == 0 ? 0.0f : 0.5f;
      for (std::size_t i = 0; i < n; ++i) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        p[i] = base + scale * (static_cast<float>(state >> 40) / 8388608.0f - 1.0f);
      }
      buffers_.push_back(p);
    }
  }
  ~Weights() {
    for (void* p : buffers_) std::free(p);
  }
  Weights(const Weights&) = delete;
  void* const* arguments() const { return buffers_.data(); }

 private:
  std::vector<void*> buffers_;
};
