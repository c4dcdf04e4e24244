// Devices as ranks of MPI: what the files of this folder share. C11.
//
// All messages go from rank to rank on one communicator of the world's own, so that every wait can end at its limit and
// name the rank that it waited for: MPI's collectives, and the making of communicators for groups, allow neither.
#ifndef KILN_RUNTIME_MIN_COLL_MPI_WORLD_H_
#define KILN_RUNTIME_MIN_COLL_MPI_WORLD_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "runtime_min/abi.h"
#include "runtime_min/coll/messages.h"
#include "runtime_min/coll/mpi/mpi_abi.h"

enum {
  KILN_MPI_TAG_DATA = 1,
  KILN_MPI_TAG_NOTICE = 2,
  KILN_MPI_TAG_CHANNEL = 16,      // and above, for channels
  KILN_MPI_MOST_BYTES = 1 << 30,  // of one message: counts of MPI are ints
  KILN_MPI_SMALL = 4 << 10,       // what all members give together: gathered at once
  KILN_MPI_WINDOW = 8 << 20,      // of an array, reduced at a time: at most
  KILN_MPI_PART = 256 << 10,      // of a window, by one member: stays in its second cache
  KILN_MPI_LINE = 64,
};

// What a rank whose run failed tells the others.
struct kiln_mpi_notice {
  int32_t rank, status;
  int32_t waits_for;  // a rank, if the failure is that one did not come; else -1
};

// A channel between two ranks.
struct kiln_mpi_route {
  struct kiln_mpi_route* next;
  int64_t channel;
  int from, to;
};

struct kiln_mpi {
  struct kiln_comm face;
  struct kiln_mpi_library mpi;
  kiln_mpi_comm comm;
  int rank, size, one_thread;
  pthread_t thread;  // that may call MPI, if only one may
  int64_t timeout_ms;
  // Messages under way, with the other rank of each.
  kiln_mpi_request* request;
  int *peer, *index;
  struct kiln_mpi_status* status;
  int64_t requests, most_requests;
  uint64_t exchanges;  // so far
  // Failure: what every wait ends with, or KILN_OK.
  _Atomic int32_t failure;
  _Atomic int aborted;
  struct kiln_mpi_notice told, heard;  // to all, and of the receive that is always open
  kiln_mpi_request hearing;
  int heard_last;                   // the rank of the last notice
  struct kiln_mpi_notice* notices;  // by rank; status KILN_OK: none
  char error[512];
  // Memory of reductions.
  char* scratch;
  int64_t scratch_bytes;
  const char** sources;  // an array of each member
  // Queues of this process, and messages of channels that have come.
  pthread_mutex_t lock;
  struct messages messages;
  struct kiln_mpi_route* routes;
};

// Written by the compiler (codegen/host/program_object.h).
struct kiln_mpi_program {
  int64_t devices;
  char build[];  // what the symbols begin with: all ranks need the same
};
__attribute__((visibility("hidden"))) extern const struct kiln_mpi_program kiln_model_mpi_program;
__attribute__((visibility("hidden"))) extern const int64_t kiln_model_device_timeout_ms;

// library.c: 0, or an error in words.
int kiln_model_mpi_library(struct kiln_mpi_library* out, char* error, size_t error_bytes);

// wait.c. These return 0, or the status that the world failed with.
// Whether a run may go on, asked at the beginning of each exchange.
int kiln_model_mpi_begin(struct kiln_mpi* w);
int kiln_model_mpi_send(struct kiln_mpi* w, const void* data, int64_t bytes, int64_t to);
int kiln_model_mpi_receive(struct kiln_mpi* w, void* data, int64_t bytes, int64_t from);
// Until all messages under way have arrived.
int kiln_model_mpi_wait(struct kiln_mpi* w);
// Looks once for failures and messages of channels; `since` as kiln_model_mpi_now gave it when the wait began.
int kiln_model_mpi_look(struct kiln_mpi* w, int64_t since, int waits_for);
int64_t kiln_model_mpi_now(void);  // milliseconds
int kiln_model_mpi_check(struct kiln_mpi* w, int code, const char* what);

// open.c: the comm's `fail`.
void kiln_model_mpi_run_failed(void* self, int64_t device, int32_t status);

// failure.c
// The world fails: tells the others, hears what they know, and says in words whose fault it is.
int kiln_model_mpi_fail(struct kiln_mpi* w, int32_t status, int waits_for, const char* text);
// Opens the receive of notices; whether one has come.
int kiln_model_mpi_listen(struct kiln_mpi* w);
int kiln_model_mpi_heard(struct kiln_mpi* w);
// Takes back what is under way, as far as MPI can.
void kiln_model_mpi_cancel(struct kiln_mpi* w);

// gather.c: the blocks of all members; `mine` is this one's, which may lie in its place.
int kiln_model_mpi_gather_blocks(struct kiln_mpi* w, const int64_t* group, int64_t members, int64_t at, char* all,
                                 int64_t bytes, const void* mine);
int kiln_model_mpi_gather(void* self, int64_t device, const int64_t* group, int64_t members, const void* mine,
                          void* all, int64_t bytes);
// exchange.c
int kiln_model_mpi_exchange(void* self, int64_t device, const kiln_exchange* x, const int64_t* group,
                            const void* const* arrays, void* const* results);
// reduce.c
int kiln_model_mpi_all_reduce(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                              const void* const* arrays, void* const* results);
int kiln_model_mpi_reduce_scatter(struct kiln_mpi* w, const kiln_exchange* x, const int64_t* group, int64_t at,
                                  const void* const* arrays, void* const* results);
// Memory that stays until the next call of it; NULL, and the world has failed, if memory runs out.
char* kiln_model_mpi_scratch(struct kiln_mpi* w, int64_t bytes);

// queues.c
int kiln_model_mpi_put(void* self, int64_t device, int64_t channel, const void* data, int64_t bytes);
int kiln_model_mpi_take(void* self, int64_t device, int64_t channel, void* data, int64_t bytes);
// Messages of channels that have come go into this process's queue.
int kiln_model_mpi_drain(struct kiln_mpi* w);

#endif  // KILN_RUNTIME_MIN_COLL_MPI_WORLD_H_
