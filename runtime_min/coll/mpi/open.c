// <model>_mpi_open and what else its callers see: devices as ranks of MPI. Linked into a program only if it calls them.
//
// A rank is a device. MPI is initialised unless the host did so; all messages go over a duplicate of the host's
// communicator. Whether all ranks run the same build is found here, so that no run has to.
// kiln renames kiln_model_* for each model.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "runtime_min/coll/mpi/world.h"

// Whether MPI_Finalize is this library's duty.
static int initialized_here;

struct greeting {
  uint32_t abi_version;
  char build[188];
};

static int start_mpi(struct kiln_mpi* w, char* error, size_t error_bytes) {
  int running = 0, over = 0, level = KILN_MPI_THREAD_SINGLE, main_thread = 1;
  w->mpi.Finalized(&over);
  if (over) return snprintf(error, error_bytes, "MPI was finalised, and a process can initialise it only once");
  w->mpi.Initialized(&running);
  if (running) {
    w->mpi.Query_thread(&level);
  } else {
    if (w->mpi.Init_thread(0, 0, KILN_MPI_THREAD_MULTIPLE, &level))
      return snprintf(error, error_bytes, "MPI cannot be initialised");
    initialized_here = 1;
  }
  w->one_thread = level < KILN_MPI_THREAD_SERIALIZED;
  w->thread = pthread_self();
  if (w->one_thread) w->mpi.Is_thread_main(&main_thread);
  if (main_thread) return 0;
  return snprintf(error, error_bytes,
                  "MPI was initialised for its main thread alone, and this is another: use MPI_THREAD_SERIALIZED");
}

// A communicator of the library's own. MPI_Comm_dup would wait for ever for ranks that do not come.
static int duplicate(struct kiln_mpi* w, kiln_mpi_comm parent, char* error, size_t error_bytes) {
  const int64_t devices = kiln_model_mpi_program.devices;
  w->mpi.Comm_rank(parent, &w->rank);
  w->mpi.Comm_size(parent, &w->size);
  if (w->size != devices)
    return snprintf(error, error_bytes, "%d %s of MPI for %lld devices: start the program with mpirun -n %lld", w->size,
                    w->size == 1 ? "rank" : "ranks", (long long)devices, (long long)devices);
  kiln_mpi_request request = w->mpi.none;
  kiln_mpi_comm comm = 0;
  if (w->mpi.Comm_idup(parent, &comm, &request))
    return snprintf(error, error_bytes, "the communicator cannot be duplicated");
  const int64_t since = kiln_model_mpi_now();
  for (int done = 0; !done;) {
    if (w->mpi.Test(&request, &done, 0)) return snprintf(error, error_bytes, "the communicator cannot be duplicated");
    if (!done && w->timeout_ms > 0 && kiln_model_mpi_now() - since >= w->timeout_ms)
      return snprintf(error, error_bytes, "not all %d ranks came to open the model within %lld ms", w->size,
                      (long long)w->timeout_ms);
    if (!done) sched_yield();
  }
  w->comm = comm;
  w->mpi.Comm_set_errhandler(comm, w->mpi.codes);
  return 0;
}

// All ranks tell all others what they run.
static int compare_builds(struct kiln_mpi* w, char* error, size_t error_bytes) {
  struct greeting mine = {KILN_ABI_VERSION, ""}, *all = calloc((uint64_t)w->size, sizeof *all);
  int64_t* group = calloc((uint64_t)w->size, sizeof *group);
  snprintf(mine.build, sizeof mine.build, "%s", kiln_model_mpi_program.build);
  for (int r = 0; group && r < w->size; ++r) group[r] = r;
  int failed = 1;
  if (!all || !group)
    snprintf(error, error_bytes, "there is no memory");
  else if (kiln_model_mpi_gather(w, w->rank, group, w->size, &mine, all, sizeof mine))
    snprintf(error, error_bytes, "%s", w->error);
  else
    failed = 0;
  for (int r = 1; !failed && r < w->size; ++r) {
    failed = memcmp(&all[r], &all[0], sizeof mine) != 0;
    if (failed)
      snprintf(error, error_bytes, "rank %d runs the build %.188s, and rank 0 runs %.188s: all need the same library",
               r, all[r].build, all[0].build);
  }
  if (!w->failure) free(all);  // else MPI may still write into it
  free(group);
  return failed;
}

static void release(struct kiln_mpi* w) {
  drop_messages(&w->messages);
  while (w->routes) {
    struct kiln_mpi_route* next = w->routes->next;
    free(w->routes);
    w->routes = next;
  }
  pthread_mutex_destroy(&w->lock);
  free(w->request);
  free(w->peer);
  free(w->index);
  free(w->status);
  free(w->notices);
  free(w->sources);
  free(w->scratch);
  free(w);
}

static int set_up(struct kiln_mpi* w, kiln_mpi_comm parent, char* error, size_t error_bytes) {
  if (kiln_model_mpi_library(&w->mpi, error, error_bytes) || start_mpi(w, error, error_bytes)) return 1;
  w->hearing = w->mpi.none;
  if (duplicate(w, parent ? parent : w->mpi.world, error, error_bytes)) return 1;
  w->notices = calloc((uint64_t)w->size, sizeof *w->notices);
  w->sources = calloc((uint64_t)w->size, sizeof *w->sources);
  if (!w->notices || !w->sources) return snprintf(error, error_bytes, "there is no memory");
  w->face = (struct kiln_comm){w,
                               w->rank,
                               kiln_model_mpi_gather,
                               kiln_model_mpi_put,
                               kiln_model_mpi_take,
                               kiln_model_mpi_run_failed,
                               kiln_model_mpi_exchange};
  if (kiln_model_mpi_listen(w)) return snprintf(error, error_bytes, "%s", w->error);
  return compare_builds(w, error, error_bytes);
}

void kiln_model_mpi_close(struct kiln_mpi* w);

int32_t kiln_model_mpi_open(struct kiln_mpi** out, void* comm, char* error, size_t error_bytes) {
  char text[512] = "there is no memory";
  struct kiln_mpi* w = calloc(1, sizeof *w);
  *out = 0;
  if (error && error_bytes) *error = 0;
  if (w) {
    pthread_mutex_init(&w->lock, 0);
    w->timeout_ms = kiln_model_device_timeout_ms;
    if (!set_up(w, comm, text, sizeof text)) {
      *out = w;
      return KILN_OK;
    }
    if (!w->comm || !w->notices) w->failure = KILN_COMMUNICATION;  // there is nobody to wait for
    kiln_model_mpi_close(w);
  }
  if (error && error_bytes) snprintf(error, error_bytes, "%s", text);
  return KILN_COMMUNICATION;
}

struct kiln_comm* kiln_model_mpi_comm(struct kiln_mpi* w) {
  return w ? &w->face : 0;
}

const char* kiln_model_mpi_error(const struct kiln_mpi* w) { return w ? w->error : ""; }

void kiln_model_mpi_set_timeout(struct kiln_mpi* w, int64_t ms) { w->timeout_ms = ms; }

void kiln_model_mpi_abort(struct kiln_mpi* w) { w->aborted = 1; }

int32_t kiln_model_mpi_connect(struct kiln_mpi* w, int64_t channel, int32_t from, int32_t to) {
  const int64_t most = INT32_MAX - KILN_MPI_TAG_CHANNEL;
  if (channel < 0 || channel > most || from < 0 || from >= w->size || to < 0 || to >= w->size) return KILN_DEVICE;
  struct kiln_mpi_route* r = malloc(sizeof *r);
  if (!r) return KILN_COMMUNICATION;
  *r = (struct kiln_mpi_route){w->routes, channel, from, to};
  w->routes = r;
  return KILN_OK;
}

// The comm's `fail`: the others shall not wait for this rank.
void kiln_model_mpi_run_failed(void* self, int64_t device, int32_t status) {
  struct kiln_mpi* w = self;
  (void)device;
  if (w->failure || (w->one_thread && !pthread_equal(w->thread, pthread_self()))) return;
  char text[sizeof w->error];
  snprintf(text, sizeof text, w->error[0] ? "%s" : "the run of this rank failed", w->error);
  kiln_model_mpi_fail(w, status, -1, text);
}

// All ranks have come, or the world has failed: MPI_Finalize knows no limit of time.
static int all_close(struct kiln_mpi* w) {
  int64_t* group = calloc((uint64_t)w->size, sizeof *group);
  char *all = calloc((uint64_t)w->size, 1), mine = 0;
  for (int r = 0; group && r < w->size; ++r) group[r] = r;
  const int failed = !group || !all || kiln_model_mpi_gather(w, w->rank, group, w->size, &mine, all, 1);
  if (!w->failure) free(all);
  free(group);
  return !failed;
}

void kiln_model_mpi_close(struct kiln_mpi* w) {
  if (!w) return;
  const int well = w->failure == KILN_OK && all_close(w);
  if (w->comm && w->hearing != w->mpi.none) {
    int done = 0;
    w->mpi.Cancel(&w->hearing);
    w->mpi.Test(&w->hearing, &done, 0);
    if (!done) w->mpi.Request_free(&w->hearing);
  }
  if (well) {
    w->mpi.Comm_free(&w->comm);
    if (initialized_here) {
      initialized_here = 0;
      w->mpi.Finalize();
    }
  }
  if (well || !w->comm) release(w);  // after a failure MPI may still read and write it
}
