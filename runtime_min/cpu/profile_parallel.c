// <model>_profile_parallel: what splits kernels among threads (parallel.c), with the time of every piece.
#include <x86intrin.h>

#include "runtime_min/abi.h"
#include "runtime_min/cpu/profile.h"

typedef void kernel_fn(void*, int64_t, int64_t);
HIDDEN void kiln_model_parallel(const struct kiln_machine*, kernel_fn*, void*, int64_t, int64_t);

struct timed {
  kernel_fn* fn;
  void* args;
  int64_t op;
};

static void run_timed(void* arg, int64_t begin, int64_t end) {
  const struct timed* t = arg;
  const uint64_t start = __rdtsc();
  t->fn(t->args, begin, end);
  kiln_model_profile_record(t->op, start, __rdtsc(), 1);
}

HIDDEN void kiln_model_profile_parallel(const struct kiln_machine* machine, kernel_fn* fn, void* args, int64_t units,
                                        int64_t limit, int64_t op) {
  if (!((const struct kiln_profiled_machine*)machine)->sampled) {
    kiln_model_parallel(machine, fn, args, units, limit);
    return;
  }
  struct timed t = {fn, args, op};
  kiln_model_parallel(machine, run_timed, &t, units, limit);
}
