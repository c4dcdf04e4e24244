// What the compiler writes into a library that communicates, for tests that link the runtime's sources.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/mpi/world_of_test.h"

// Constants of a library; here they are what a test says.
struct {
  int64_t devices;
  char build[64];
} kiln_model_mpi_program = {1, "test"};
int64_t kiln_model_device_timeout_ms = 60000;

void set_program(int64_t devices, const char* build) {
  kiln_model_mpi_program.devices = devices;
  snprintf(kiln_model_mpi_program.build, sizeof kiln_model_mpi_program.build, "%s", build);
}

int64_t started_ranks(void) {
  const char* ranks = getenv("OMPI_COMM_WORLD_SIZE");
  return ranks ? atoll(ranks) : 1;
}
