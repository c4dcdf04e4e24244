// The same numbers on every machine: splitmix64.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::mutate {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  // 0 to n - 1; 0 if n is 0.
  size_t Below(size_t n) { return n ? Next() % n : 0; }
  template <typename T>
  const T& Of(const std::vector<T>& list) {
    return list[Below(list.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace kiln::mutate
