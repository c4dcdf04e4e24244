// What generated code and the runtime agree on. C11; generated headers repeat it under the model's own names.
#ifndef KILN_RUNTIME_MIN_ABI_H_
#define KILN_RUNTIME_MIN_ABI_H_

#include <stdint.h>

// The threads that help a run: all that kiln asks of a host's own pool.
struct kiln_pool {
  void* self;
  // Threads that work at once, the caller included.
  int (*size)(void* self);
  // Has fn(arg) called once, on any thread and at any time; may call it before returning.
  void (*submit)(void* self, void (*fn)(void* arg), void* arg);
  // Called in a loop by a run that waits for what it submitted: runs something that was submitted, waits a little, or
  // just returns. A pool that never runs models on its own threads may leave it empty.
  void (*help)(void* self);
};

enum kiln_status {
  KILN_OK = 0,
  KILN_NULL_POINTER = 1,
  KILN_UNSUPPORTED_CPU = 2,
  KILN_MISALIGNED = 3,
};

#endif  // KILN_RUNTIME_MIN_ABI_H_
