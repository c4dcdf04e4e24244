// Independent pieces of work on the machine's cores.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace kiln {

// Calls body(0) … body(n - 1), each once, on as many threads as the machine has cores; returns when all have returned.
// The order is not fixed: what a body writes must be its own.
inline void ParallelFor(size_t n, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t k = next++; k < n; k = next++) body(k);
  };
  const size_t cores = std::thread::hardware_concurrency();
  std::vector<std::thread> others;
  for (size_t t = 1; t < n && t < cores; ++t) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
}

}  // namespace kiln
