// What a test tells the fake CUDA driver, and what that counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct FakeCuda {
  int devices = 1, major = 9, minor = 0;
  void* self = nullptr;
  int (*buffers_of)(void* self, const char* kernel) = nullptr;
  int (*launch)(void* self, const char* kernel, int64_t blocks, int64_t threads, int64_t number,
                void* const* buffers) = nullptr;
  const void* image = nullptr;     // that was loaded last
  bool no_conditions = false;      // the driver makes no conditional nodes
  int streams = 0;                 // made so far
  std::vector<std::string> order;  // copies, events and who awaits whom
  int conditional_nodes = 0, decisions = 0;
  int launches = 0, allocations = 0, waits = 0, captures = 0, instantiations = 0, updates = 0, replays = 0;
};

extern "C" void fake_cuda_set(FakeCuda* fake);
