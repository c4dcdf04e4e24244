// Runs the model of weights.py on files of weights:
//
//   weights_main run FILE                     opens, runs three times, says how long each took
//   weights_main hold FILE                    runs once, says "ready", and waits for the end of its input
//   weights_main swap FILE FILE SWAPS         swaps while 8 threads run; a run that saw parts of both files fails
//
// All numbers of a file are the same power of two, so every element of the result is ROWS times it, exactly.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "large.h"

namespace {

const large::Argument_x::Owned& Ones() {
  static const auto* x = [] {
    auto* ones = new large::Argument_x::Owned;
    for (float& v : *ones) v = 1;
    return ones;
  }();
  return *x;
}

// What all elements of a run's result are; 0 if they differ, or if the run fails.
float Run(large::Weights& weights, const large::Context& context, large::Result_y::Owned& y) {
  const large::Status status = large::run(context, weights, Ones(), y);
  if (!status) return std::puts(status.text()), 0.0f;
  for (const float v : y)
    if (v != y[0]) return 0;
  return y[0];
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

int Swap(large::Weights& weights, const std::string& first, const std::string& second, int swaps) {
  large::Context context;
  large::Result_y::Owned y;
  large::Weights other(second.c_str());
  const float of_first = Run(weights, context, y), of_second = Run(other, context, y);
  if (of_first == 0 || of_second == 0 || of_first == of_second) return std::puts("the files do not differ"), 1;
  std::atomic<bool> stop{false};
  std::atomic<int> firsts{0}, seconds{0}, torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      large::Context mine;
      large::Result_y::Owned result;
      while (!stop) {
        const float got = Run(weights, mine, result);
        ++(got == of_first ? firsts : got == of_second ? seconds : torn);
      }
    });
  int done = 0;
  for (; torn == 0 && (done < swaps || firsts < 8 || seconds < 8); ++done) {
    // Let some runs begin with each file before it goes.
    const int runs = firsts + seconds;
    while (torn == 0 && firsts + seconds < runs + 4) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (!weights.Swap(large::Weights((done % 2 ? first : second).c_str()))) return std::puts(weights.error()), 1;
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  std::printf("swaps %d runs_of_first %d runs_of_second %d torn %d\n", done, firsts.load(), seconds.load(),
              torn.load());
  return torn ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string what = argv[1];
  const auto start = std::chrono::steady_clock::now();
  large::Weights weights(argv[2]);
  if (!weights.ok()) return std::puts(weights.error()), 1;
  const double opening = Seconds(start);
  if (what == "swap" && argc == 5) return Swap(weights, argv[2], argv[3], std::atoi(argv[4]));
  kiln_pool* pool = large_pool_create(2);
  int status = 0;
  {
    large::Context context(pool);
    large::Result_y::Owned y;
    std::vector<double> seconds;
    for (int k = 0; k < (what == "run" ? 3 : 1) && !status; ++k) {
      const auto begin = std::chrono::steady_clock::now();
      if (Run(weights, context, y) == 0) status = 1;
      seconds.push_back(Seconds(begin));
    }
    if (what == "run" && !status) {
      std::printf("opening %.6f first %.3f", opening, seconds[0]);
      std::printf(" later %.3f\n", seconds[2]);
    }
    if (what == "hold" && !status) {
      std::puts("ready");
      std::fflush(stdout);
      while (std::getchar() != EOF) {
      }
    }
  }
  large_pool_destroy(pool);
  return status;
}
