// What the devices of a world share. C11.
#ifndef KILN_RUNTIME_MIN_COLL_WORLD_H_
#define KILN_RUNTIME_MIN_COLL_WORLD_H_

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "runtime_min/abi.h"
#include "runtime_min/coll/messages.h"

struct helper;
struct meeting;
struct round;

struct kiln_world {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct meeting* meetings;
  struct round* rounds;  // exchanges under way
  struct messages messages;
  int32_t failure;  // KILN_OK, or what every wait ends with
  int64_t devices, timeout_ms;
  int looks;                 // at a counter, before a thread that waits gives its processor away
  _Atomic int64_t sleepers;  // in exchanges
  // Of exchanges beside the runs: a thread of each device, which waits until one may begin.
  struct helper* helpers;
  int stop;
  struct kiln_comm comm[];
};

// When a wait that begins now ends.
struct timespec kiln_model_world_deadline(const struct kiln_world* w);
// With the lock held, until something changes. Returns false if nothing did within the limit.
int kiln_model_world_wait(struct kiln_world* w, const struct timespec* deadline);
// With the lock held: every wait ends with `failure`.
void kiln_model_world_fail(struct kiln_world* w, int32_t failure);

// kiln_comm's functions of these names (exchange_threads.c).
int kiln_model_world_exchange(void* self, int64_t device, const kiln_exchange* x, const int64_t* group,
                              const void* const* arrays, void* const* results);
void* kiln_model_world_offer(void* self, int64_t device, const kiln_exchange* x, const int64_t* group,
                             const void* const* arrays, void* const* results);
int kiln_model_world_take(void* self, int64_t device, void* offered, const kiln_exchange* x, void* const* results);
// beside.c. The device's run ends: nobody reads or writes its arrays any more once this returns.
void kiln_model_world_withdraw(struct kiln_world* w, int64_t device);
// No thread looks at an exchange any more; no run may be under way.
void kiln_model_world_quiet(struct kiln_world* w);
void kiln_model_world_stop_helpers(struct kiln_world* w);
// Forgets exchanges that were not finished; no run may be under way.
void kiln_model_world_forget_rounds(struct kiln_world* w);

#endif  // KILN_RUNTIME_MIN_COLL_WORLD_H_
