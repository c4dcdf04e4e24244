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

// One device's way to the others and to the host program's queues. Functions return 0, or anything else for failure,
// which ends the run with KILN_COMMUNICATION. A device is numbered replica * partitions + partition.
struct kiln_comm {
  void* self;
  int64_t device;
  // All `members` devices of `group` call it; each gets the blocks of `bytes` bytes of all, in the group's order.
  int (*gather)(void* self, int64_t device, const int64_t* group, int64_t members, const void* mine, void* all,
                int64_t bytes);
  // Queues: `channel` is a channel of the program, or KILN_INFEED or KILN_OUTFEED of that device. Receive waits.
  int (*send)(void* self, int64_t device, int64_t channel, const void* data, int64_t bytes);
  int (*receive)(void* self, int64_t device, int64_t channel, void* data, int64_t bytes);
};

enum { KILN_INFEED = -1, KILN_OUTFEED = -2 };

enum kiln_status {
  KILN_OK = 0,
  KILN_NULL_POINTER = 1,
  KILN_UNSUPPORTED_CPU = 2,
  KILN_MISALIGNED = 3,
  KILN_COMMUNICATION = 4,
  KILN_CUSTOM_CALL = 5,
  KILN_BATCH_SIZE = 6,
  KILN_EXTENT = 7,
  KILN_GPU = 8,        // the device or one of its libraries failed
  KILN_NO_DEVICE = 9,  // no driver, or no GPU that the library has code for
};

#endif  // KILN_RUNTIME_MIN_ABI_H_
