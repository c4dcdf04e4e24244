// How long several devices take together.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>

namespace kiln {

inline double NowUs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

// When the devices of a run begin and end: it takes from the first beginning to the last end.
class Span {
 public:
  void Add(double begin, double end) {
    const std::lock_guard<std::mutex> lock(mutex_);
    begin_ = std::min(begin_, begin);
    end_ = std::max(end_, end);
  }
  double length() const { return end_ - begin_; }

 private:
  std::mutex mutex_;
  double begin_ = std::numeric_limits<double>::infinity(), end_ = 0;
};

}  // namespace kiln
