// Failures of NCCL and of other devices, and the waits that end with them.
// kiln renames kiln_model_* for each model.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "runtime_min/gpu/nccl/nccl.h"

int64_t kiln_model_nccl_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// An abort frees the communicator, whatever is under way on it.
static void abort_all(struct kiln_nccl* n) {
  for (int64_t k = 0; n->comm && k < n->groups->groupings; ++k) {
    if (n->comm[k] && n->comm[k] != n->world) n->api->CommAbort(n->comm[k]);
    n->comm[k] = NULL;
  }
  if (n->world) n->api->CommAbort(n->world);
  n->world = NULL;
}

int32_t kiln_model_nccl_fail(struct kiln_nccl* n, int32_t status, const char* format, ...) {
  if (n->failure) return n->failure;
  n->failure = status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(n->error, sizeof n->error, format, arguments);
  va_end(arguments);
  abort_all(n);
  return status;
}

int32_t kiln_model_nccl_check(struct kiln_nccl* n, kiln_nccl_comm comm, kiln_nccl_result code, const char* what) {
  if (code == kNcclSuccess || code == kNcclInProgress) return 0;
  const char* more = n->api->GetLastError(comm);
  return kiln_model_nccl_fail(n, KILN_COMMUNICATION, "%s: NCCL says: %s%s%s%s", what, n->api->GetErrorString(code),
                              more && *more ? " (" : "", more ? more : "", more && *more ? ")" : "");
}

int32_t kiln_model_nccl_settle(struct kiln_nccl* n, kiln_nccl_comm comm, const char* what) {
  const int64_t since = kiln_model_nccl_now();
  for (;;) {
    kiln_nccl_result state = kNcclSuccess;
    const int32_t status = kiln_model_nccl_check(n, comm, n->api->CommGetAsyncError(comm, &state), what);
    if (status) return status;
    if (state != kNcclInProgress) return kiln_model_nccl_check(n, comm, state, what);
    if (n->timeout_ms > 0 && kiln_model_nccl_now() - since > n->timeout_ms)
      return kiln_model_nccl_fail(n, KILN_TIMEOUT, "%s: another device did not come within %lld ms, or is gone", what,
                                  (long long)n->timeout_ms);
    sched_yield();
  }
}

int32_t kiln_model_nccl_look(struct kiln_nccl* n, const char* what) {
  if (n->failure) return n->failure;
  for (int64_t k = -1; k < n->groups->groupings; ++k) {
    kiln_nccl_comm comm = k < 0 ? n->world : n->comm[k];
    kiln_nccl_result state = kNcclSuccess;
    if (!comm) continue;
    int32_t status = kiln_model_nccl_check(n, comm, n->api->CommGetAsyncError(comm, &state), what);
    if (!status) status = kiln_model_nccl_check(n, comm, state, what);
    if (status) return status;
  }
  return 0;
}
