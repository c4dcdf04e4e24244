// The runtime's MPI transport under the names that its sources have, with what the compiler writes into a library.
//
// Tests link the sources of runtime_min/coll themselves, so that one program serves any number of ranks.
#ifndef KILN_TESTS_MPI_WORLD_OF_TEST_H_
#define KILN_TESTS_MPI_WORLD_OF_TEST_H_

#include <stdint.h>

#include "runtime_min/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kiln_mpi;
int32_t kiln_model_mpi_open(struct kiln_mpi** mpi, void* comm, char* error, size_t error_bytes);
kiln_comm* kiln_model_mpi_comm(struct kiln_mpi* mpi);
const char* kiln_model_mpi_error(const struct kiln_mpi* mpi);
void kiln_model_mpi_set_timeout(struct kiln_mpi* mpi, int64_t milliseconds);
int32_t kiln_model_mpi_connect(struct kiln_mpi* mpi, int64_t channel, int32_t from, int32_t to);
void kiln_model_mpi_abort(struct kiln_mpi* mpi);
void kiln_model_mpi_close(struct kiln_mpi* mpi);

kiln_world* kiln_model_world_create(int64_t devices);
kiln_comm* kiln_model_world_comm(kiln_world* world, int64_t device);
void kiln_model_world_reset(kiln_world* world);
void kiln_model_world_destroy(kiln_world* world);

// program.c: before open, for how many devices the program claims to be, and of which build.
void set_program(int64_t devices, const char* build);
// How many ranks mpirun started.
int64_t started_ranks(void);

#ifdef __cplusplus
}
#endif

#endif  // KILN_TESTS_MPI_WORLD_OF_TEST_H_
