// What a test tells the fake cuBLASLt, and what that counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

struct FakeCublasLt {
  size_t version = 130000;
  int create_code = 0, multiply_code = 0;
  int candidates = 3;           // that it names at most; the algorithm of number 1 is not supported
  bool reversed = false;        // another order, as other versions have
  bool reject_words = false;    // whose check of a tuned algorithm fails
  bool relu_drops_nan = false;  // as a maximum of numbers has it
  bool lazy = false;  // an algorithm's code is loaded at its first use, which a recorded stream does not allow
  std::function<bool(int in, int out, uint32_t epilogue)> refuse;  // combinations that it does not compute
  // What happened.
  int last_algorithm = -1, last_compute = 0;  // of the last product
  int products = 0, heuristics = 0, checks = 0;
  uint32_t alignment[4] = {0, 0, 0, 0};  // that the last heuristic was asked for: of a, b, c and the result
};

extern "C" FakeCublasLt* fake_cublaslt(void);
