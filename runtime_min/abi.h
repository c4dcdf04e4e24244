// What generated code and the runtime agree on. C11; generated headers repeat it under the model's own names.
#ifndef KILN_RUNTIME_MIN_ABI_H_
#define KILN_RUNTIME_MIN_ABI_H_

#include <stdint.h>

// Who runs the pieces of a kernel: all that kiln asks of a host's own pool.
struct kiln_pool {
  void* self;
  // Calls fn(args, begin, end) for parts of [0, units) on any threads, all of it before returning.
  void (*parallel_for)(void* self, void (*fn)(void* args, int64_t begin, int64_t end), void* args, int64_t units);
  // Threads that work at once, the caller included.
  int (*size)(void* self);
};

enum kiln_status {
  KILN_OK = 0,
  KILN_NULL_POINTER = 1,
  KILN_UNSUPPORTED_CPU = 2,
  KILN_MISALIGNED = 3,
};

#endif  // KILN_RUNTIME_MIN_ABI_H_
