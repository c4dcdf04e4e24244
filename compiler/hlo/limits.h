// What a program may ask for before it is refused.
//
// Why: a few bytes of text can ask for any amount of memory or time. Beyond a limit a program ends in one error that
//   names the limit, before the memory is taken. The config's `limits` (aot/config.proto) sets them.
#pragma once

#include <cstdint>

namespace kiln {

struct Limits {
  int64_t elements = int64_t{1} << 56;              // of one array
  int64_t instructions = int64_t{1} << 24;          // of a module as it is written
  int64_t inlined_instructions = int64_t{1} << 21;  // once each call, loop and branch owns what it calls
  int64_t call_depth = 2048;                        // of computations that call one another
  int64_t nesting = 200;                            // of tuples, and of operands written inside operand lists
  int64_t interface_arrays = int64_t{1} << 17;      // among the entry's parameters, and among its results
  int64_t devices = 4096;                           // replicas times partitions
  int64_t fft_length = int64_t{1} << 27;
};

}  // namespace kiln
