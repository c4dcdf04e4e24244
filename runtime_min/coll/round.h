// One exchange of one group of devices that are threads: who has come, and what each gets. C11.
#ifndef KILN_RUNTIME_MIN_COLL_ROUND_H_
#define KILN_RUNTIME_MIN_COLL_ROUND_H_

#include <stdatomic.h>

#include "runtime_min/coll/world.h"

enum {
  kLine = 64,         // of a cache: members write no line together
  kPiece = 128 << 10  // bytes of a result that a thread takes upon itself at a time
};

// An all-reduce has both, the rest only the second.
enum { kCombine, kDeliver, kPhases };

struct party {
  const void* const* arrays;
  void* const* results;
  int here, left;
  // Of an exchange beside the runs: the floating-point environment of the device's run, the pieces of its results in
  // each phase, and how many of them somebody has taken upon himself and has done.
  unsigned mxcsr;
  int64_t pieces[kPhases];
  _Atomic int64_t claimed[kPhases], ready[kPhases];
};

// Behind it, in one allocation: the group, the bytes of each array, and each member's table of arrays: of small
// exchanges with the arrays, of those beside the runs with the results.
struct round {
  struct round* next;
  const kiln_exchange* what;  // of a member, which stays until all have left; beside the runs
  int64_t kind, members, arrays;
  int64_t* group;
  int64_t* bytes;
  char* copies;          // of the first member; null: arrays are read where they are
  int64_t member_bytes;  // from one member's copies to the next one's
  int beside;            // other threads make it while the members' runs go on
  _Atomic int cancelled;
  _Atomic int64_t arrived, combined, done, left;
  _Atomic int64_t active;  // threads at a piece
  int64_t helpers;         // that look at it; with the lock held
  struct party party[];
};

static inline unsigned float_environment(void) {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_stmxcsr();
#else
  return 0;
#endif
}

static inline void set_float_environment(unsigned mxcsr) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_ldmxcsr(mxcsr);
#else
  (void)mxcsr;
#endif
}

// exchange_threads.c
int64_t kiln_model_world_place(const int64_t* group, int64_t members, int64_t device);
// Comes to the exchange: null, with the status, if it cannot take place.
struct round* kiln_model_world_arrive(struct kiln_world* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                                      const void* const* arrays, void* const* results, int beside, int* failed);
// All members are there, or the status with which the wait failed.
int kiln_model_world_assemble(struct kiln_world* w, struct round* r, int64_t members);
// Whether the counter got there before the thread has to sleep.
int kiln_model_world_reached(const struct kiln_world* w, const _Atomic int64_t* counter, int64_t count);
// With the lock held: the round ends.
void kiln_model_world_end_round(struct kiln_world* w, struct round* r);

// pieces.c
// Where the part of an array begins that member `k` of an all-reduce combines.
int64_t kiln_model_world_part(const kiln_exchange* x, int64_t a, int64_t k);
// Bytes of what a member gets of array `a`.
int64_t kiln_model_world_result_bytes(const kiln_exchange* x, int64_t a);
// Bytes [from, to) of array `a` of all members, combined in the group's order, to `result`, which may be one of them.
void kiln_model_world_combine(const kiln_exchange* x, const struct party* party, int64_t a, int64_t from, int64_t to,
                              char* result);
// Bytes [from, to) of what member `at` gets of array `a`, from what the members give.
void kiln_model_world_fetch(const kiln_exchange* x, const struct party* party, int64_t a, int64_t at, int64_t from,
                            int64_t to);
// Bytes [from, to) of array `a`, from the parts that the members of an all-reduce combined.
void kiln_model_world_collect(const kiln_exchange* x, const struct party* party, int64_t a, int64_t at, int64_t from,
                              int64_t to);

// beside.c
void kiln_model_world_start_helper(struct kiln_world* w, int64_t device);
// With the lock held: the members' threads look for what they can do.
void kiln_model_world_wake_helpers(struct kiln_world* w, const struct round* r);
// Of a new round beside the runs.
void kiln_model_world_cut_in_pieces(struct round* r);
// What the device's run does when it wants its results.
int kiln_model_world_take_beside(struct kiln_world* w, struct round* r, int64_t at);

#endif  // KILN_RUNTIME_MIN_COLL_ROUND_H_
