// What every model compiled by kiln shares with its caller: statuses, memory, threads, devices. C99, C++11.
//
// Generated headers hold this text; a program that includes several of them has the types once, so a pool or a world of
// one model serves the others.
#ifndef KILN_TYPES_H_
#define KILN_TYPES_H_

#include <stddef.h>
#include <stdint.h>

// Counts changes of what follows. Libraries of another version need headers of that version.
#define KILN_ABI_VERSION 4

typedef enum kiln_status {
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
  KILN_ARENA_SIZE = 10,
  KILN_OVERLAP = 11,
  KILN_DIMENSION = 12,
  KILN_DEVICE = 13,
  KILN_TIMEOUT = 14,
  KILN_WEIGHTS = 15,  // a file of weights that is missing, or not the library's
  KILN_NUMERICS = 16  // debug { check_numerics }: an operation gave a NaN or an infinity
} kiln_status;

// Memory that a run works in.
typedef struct kiln_arena {
  void* data;
  size_t bytes;
} kiln_arena;

// The threads that help a run: all that kiln asks of a host's own pool. Any number of models and runs may share one.
typedef struct kiln_pool {
  void* self;
  // Threads that work at once, the caller included.
  int (*size)(void* self);
  // Has fn(arg) called once, on any thread and at any time; may call it before returning.
  void (*submit)(void* self, void (*fn)(void* arg), void* arg);
  // Called in a loop by a run that waits for what it submitted: runs something that was submitted, waits a little, or
  // just returns. A pool that never runs models on its own threads may leave it empty.
  void (*help)(void* self);
} kiln_pool;

// What all members of a group do together. Each gives `arrays` arrays and gets as many; blocks are equal parts of an
// array, one for each member, in the group's order.
typedef enum kiln_exchange_kind {
  KILN_ALL_REDUCE,      // each gets the combination of all
  KILN_REDUCE_SCATTER,  // each gets its block of the combination of all
  KILN_ALL_GATHER,      // each gets the arrays of all as blocks
  KILN_ALL_TO_ALL,      // each gets, as blocks, its own block of each member's
  KILN_PERMUTE          // each gets the array of the member that `source` names, or zeros
} kiln_exchange_kind;

typedef struct kiln_exchange {
  int32_t kind;
  int64_t members, arrays;
  const int64_t* bytes;   // of each array that a member gives
  const int64_t* source;  // of a permute, for each member: a place in the group, or -1
  // Of a reduction: combine(how, into, other, n) puts into[k] op other[k] into into[k] for n elements. Arrays are
  // combined in the group's order, so that every member gets the same bits.
  int64_t element_bytes;
  void (*combine)(const void* how, void* into, const void* other, int64_t elements);
  const void* how;
} kiln_exchange;

// One device's way to the others and to the host program's queues. Functions return 0, or anything else for failure,
// which ends the run: with KILN_TIMEOUT if they return that, else with KILN_COMMUNICATION. Those that wait must end by
// themselves: a run has no other limit of time. A device is numbered replica * partitions + partition.
typedef struct kiln_comm {
  void* self;
  int64_t device;
  // All `members` devices of `group` call it; each gets the blocks of `bytes` bytes of all, in the group's order.
  int (*gather)(void* self, int64_t device, const int64_t* group, int64_t members, const void* mine, void* all,
                int64_t bytes);
  // Queues: a channel of the program, or KILN_INFEED or KILN_OUTFEED of that device. Receive waits.
  int (*send)(void* self, int64_t device, int64_t channel, const void* data, int64_t bytes);
  int (*receive)(void* self, int64_t device, int64_t channel, void* data, int64_t bytes);
  // Called when the device's run ends with an error: the others need not wait for it any more. May be NULL.
  void (*fail)(void* self, int64_t device, int32_t status);
  // All members of `group` call it. The result of an all-reduce may be the array that was given; no other results and
  // arrays overlap. May be NULL: gathers do the same, with more bytes moved.
  int (*exchange)(void* self, int64_t device, const kiln_exchange* what, const int64_t* group,
                  const void* const* arrays, void* const* results);
  // Begins an exchange before its results are wanted, and does not wait; or returns NULL where `exchange` shall be
  // called instead. With `results`, nothing writes to the arrays or touches the results until `take`: others may read
  // and write them meanwhile. Without, it copies what this device gives. All members offer alike, in one order. May be
  // NULL, as `take` then is: who wraps the functions of another comm and leaves these out sets both to NULL.
  void* (*offer)(void* self, int64_t device, const kiln_exchange* what, const int64_t* group, const void* const* arrays,
                 void* const* results);
  // Ends it. Called for every offer, unless the run fails: then `fail` ends all.
  int (*take)(void* self, int64_t device, void* offered, const kiln_exchange* what, void* const* results);
} kiln_comm;

#define KILN_INFEED (-1)
#define KILN_OUTFEED (-2)

// Devices as threads of this process.
typedef struct kiln_world kiln_world;

// One run, as libraries take it.
typedef struct kiln_call {
  int64_t batch;  // of a library with several batch sizes
  void* const* arguments;
  void* const* results;
  kiln_arena arena, slow_arena;
  const kiln_pool* pool;  // NULL: the calling thread alone
  const kiln_comm* comm;  // of a program that communicates
} kiln_call;

#endif  // KILN_TYPES_H_
