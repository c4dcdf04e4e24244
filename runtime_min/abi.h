// What generated code for CPUs and the runtime agree on, beside what callers see (types.h). C11.
#ifndef KILN_RUNTIME_MIN_ABI_H_
#define KILN_RUNTIME_MIN_ABI_H_

#include <stdint.h>

#include "runtime_min/types.h"

// What an entry runs its kernels with.
struct kiln_machine {
  const struct kiln_pool* pool;
  void* slow_arena;
};

// The same in a library that measures its operations. Its entry makes one for each run.
struct kiln_profiled_machine {
  struct kiln_machine machine;
  int64_t sampled;  // the run is measured
};

// An argument or a result, as <model>_run checks it.
struct kiln_port {
  int64_t bytes;
  int64_t alignment;  // a power of two
  int64_t alias;      // of an argument, the result that overwrites it; of a result, the argument that holds it; or -1
  int64_t low, high;  // what an argument that states an extent may be; low > high: anything
};

// The levels that code is made for, in the order of a program's entries, best last.
#define KILN_CPU_LEVELS \
  { "v2", "v3", "v3dot", "v4", "v4dot", "v4fp16", "v4bf16", "amx" }
enum { KILN_LEVELS = 8 };

// A program at one level.
struct kiln_comm;
typedef int32_t kiln_entry(void* const* arguments, void* const* results, void* arena, const struct kiln_machine*,
                           const struct kiln_comm*);

// A program as <model>_run checks calls of it, and runs it.
struct kiln_program {
  kiln_entry* entries[KILN_LEVELS];  // NULL where the archive does not hold the level
  int64_t arguments, results;
  int64_t arena_bytes, slow_arena_bytes;
  int64_t devices;           // 0: it does not communicate
  int64_t flush_subnormals;  // to zero, while it runs
  int64_t x87;               // what it calls may use x87: functions of the caller's, fmod
  int64_t check_overlap;     // it writes at most KILN_MOST_WRITTEN arrays, arenas included
  int64_t extents;           // arguments up to the last that states an extent
  struct kiln_port port[];   // of the arguments, then of the results
};

enum { KILN_ARENA_ALIGNMENT = 64, KILN_MOST_WRITTEN = 128 };
// Bytes of all members that an exchange may have to be offered.
enum { KILN_SMALL_EXCHANGE = 32 << 10 };

// How the elements of two arrays are combined: kernels over {into, other, into, no scratch}, of whole blocks and of
// single elements (`kiln_exchange::how`).
struct kiln_combination {
  void (*block)(void* const* arrays, int64_t first_unit, int64_t last_unit);
  int64_t block_elements, block_units;
  void (*one)(void* const* arrays, int64_t first_unit, int64_t last_unit);
  int64_t one_units;
  int64_t element_bytes;
};

#endif  // KILN_RUNTIME_MIN_ABI_H_
