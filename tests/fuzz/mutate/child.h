// A function in a process of its own, with limits.
#pragma once

#include <functional>
#include <string>

namespace kiln::mutate {

struct Limits {
  int cpu_seconds = 10;
  int wall_seconds = 120;            // a busy machine breaks no test; what waits for ever ends
  int64_t bytes = int64_t{2} << 30;  // resident
};

struct Ended {
  std::string said;     // what the function returned
  std::string problem;  // how the process ended otherwise, or which limit it broke; empty: neither
  std::string log;      // its standard error, at most 64 KiB
};

Ended RunInChild(const std::function<std::string()>& f, const Limits& limits);

}  // namespace kiln::mutate
