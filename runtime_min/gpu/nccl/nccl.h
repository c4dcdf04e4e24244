// Devices that NCCL connects: one device's communicators, and the calls that a program's collectives become. C11.
//
// What: a communicator of all devices, made of an id that one of them asks NCCL for and that travels by the host's own
//   kiln_comm, and one for each list of groups, split off it. They are made once, before the first run.
// Guarantees: communicators do not block, so that each wait here ends: with the device's time limit, or with what NCCL
//   reports of the others. A failure aborts all communicators; every later call returns the same failure.
// Knows nothing of the driver: tests use the same code over a library that stands in for NCCL.
#ifndef KILN_RUNTIME_MIN_GPU_NCCL_NCCL_H_
#define KILN_RUNTIME_MIN_GPU_NCCL_NCCL_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime_min/abi.h"
#include "runtime_min/gpu/abi.h"
#include "runtime_min/gpu/nccl/exchange.h"
#include "runtime_min/gpu/nccl/nccl_abi.h"

struct kiln_nccl {
  const struct kiln_nccl_library* api;
  const struct kiln_gpu_groups* groups;
  int64_t device;
  kiln_nccl_comm world;
  kiln_nccl_comm* comm;  // by grouping; null outside of its groups
  int64_t timeout_ms;    // 0: none
  int32_t failure;       // KILN_OK, or what every call returns
  int64_t calls;         // of collectives, sends and receives
  char error[512];
};

#ifdef __cplusplus
extern "C" {
#endif

// library.c: NCCL's functions, opened once; not null: why there are none.
const char* kiln_model_nccl_library(const struct kiln_nccl_library** out);

// connect.c. `n` is zero but for `api`, `groups` and `timeout_ms`. All devices call it, with the ids of device 0.
int32_t kiln_model_nccl_connect(struct kiln_nccl* n, int64_t device, const kiln_nccl_id* id);
// The same with an id that device 0 makes and the others get by `comm`.
int32_t kiln_model_nccl_connect_by(struct kiln_nccl* n, const struct kiln_comm* comm);
// All devices, once nothing is under way: without waiting for those that have failed.
void kiln_model_nccl_close(struct kiln_nccl* n);

// failure.c
int64_t kiln_model_nccl_now(void);  // milliseconds
// Aborts the communicators, and keeps what failed in words; returns n->failure, which is the first one's.
int32_t kiln_model_nccl_fail(struct kiln_nccl* n, int32_t status, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
// 0, or the failure that the call's result is. What is in progress is none.
int32_t kiln_model_nccl_check(struct kiln_nccl* n, kiln_nccl_comm comm, kiln_nccl_result code, const char* what);
// Until what was begun on the communicator has been put on its stream.
int32_t kiln_model_nccl_settle(struct kiln_nccl* n, kiln_nccl_comm comm, const char* what);
// What NCCL has found out about the other devices since.
int32_t kiln_model_nccl_look(struct kiln_nccl* n, const char* what);

// calls.c: puts an exchange on `stream`. Buffers: arrays, then results. `table` fills what nobody sends.
int32_t kiln_model_nccl_exchange(struct kiln_nccl* n, const struct kiln_gpu_exchange* x, void* const* buffers,
                                 void* stream, const struct kiln_gpu* table);

// ragged.c: the same of one whose sizes the host must read; fails in recordings.
int32_t kiln_model_nccl_ragged(struct kiln_nccl* n, const struct kiln_gpu_exchange* x, void* const* buffers,
                               void* stream, const struct kiln_gpu* table);

#ifdef __cplusplus
}
#endif

#endif  // KILN_RUNTIME_MIN_GPU_NCCL_NCCL_H_
