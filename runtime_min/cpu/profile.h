// What the parts of the profiler, and the code that they measure, agree on. The tables are written by the compiler
// (codegen/host/ops_object.h).
#ifndef KILN_RUNTIME_MIN_CPU_PROFILE_H_
#define KILN_RUNTIME_MIN_CPU_PROFILE_H_

#include "runtime_min/profile.h"

#define HIDDEN __attribute__((visibility("hidden")))

struct kiln_profile_counter {
  int64_t calls;
  uint64_t ticks, thread_ticks;  // the latter of operations that were split alone
};

HIDDEN extern const int64_t kiln_model_op_count;
HIDDEN extern const kiln_profile_op kiln_model_ops[];
HIDDEN extern struct kiln_profile_counter kiln_model_profile_counters[];

// The latest events, if the caller gave memory for them.
struct kiln_profile_ring {
  kiln_profile_event* events;
  int64_t room;
  int64_t next;  // how many there were
};
HIDDEN extern struct kiln_profile_ring kiln_model_profile_ring;

// Called by generated code, and by what splits kernels.
HIDDEN void kiln_model_profile_record(int64_t op, uint64_t begin, uint64_t end, int64_t part);
HIDDEN double kiln_model_profile_ns_per_tick(void);

#endif  // KILN_RUNTIME_MIN_CPU_PROFILE_H_
