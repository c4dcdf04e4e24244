// A program that uses MPI itself, and was linked with it: it initialises MPI for one thread, hands over a communicator
// with other ranks than MPI_COMM_WORLD's, and finalises MPI itself. Started by mpirun.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/mpi/world_of_test.h"

namespace {

int failures = 0;
void Expect(bool ok, const char* what, const char* why = "") {
  if (!ok) std::printf("FAILED: %s %s\n", what, why), ++failures;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  set_program(ranks, "host");
  struct kiln_mpi* mpi = nullptr;
  char error[512];
  std::thread([&] { kiln_model_mpi_open(&mpi, nullptr, error, sizeof error); }).join();
  Expect(!mpi && std::strstr(error, "this is another: use MPI_THREAD_SERIALIZED"), "opened by another thread:", error);
  kiln_model_mpi_open(&mpi, reversed, error, sizeof error);
  Expect(mpi, "open:", error);
  if (!mpi) MPI_Abort(MPI_COMM_WORLD, 1);
  const kiln_comm& comm = *kiln_model_mpi_comm(mpi);
  Expect(comm.device == ranks - 1 - rank, "the rank is that of the program's communicator");
  std::vector<int64_t> group, all(static_cast<size_t>(ranks));
  for (int64_t r = 0; r < ranks; ++r) group.push_back(r);
  const auto gather = [&] {
    return comm.gather(comm.self, comm.device, group.data(), ranks, &comm.device, all.data(), sizeof comm.device);
  };
  // The program's own messages do not meet the model's.
  int ring = -1;
  MPI_Request request;
  MPI_Irecv(&ring, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, reversed, &request);
  Expect(gather() == 0 && all == group, "gather:", kiln_model_mpi_error(mpi));
  MPI_Send(&rank, 1, MPI_INT, (static_cast<int>(comm.device) + 1) % ranks, 1, reversed);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  Expect(ring >= 0, "the program's own message");
  MPI_Barrier(MPI_COMM_WORLD);
  kiln_model_mpi_close(mpi);
  int over = 1;
  MPI_Finalized(&over);
  Expect(!over, "MPI is the program's to finalise");
  MPI_Comm_free(&reversed);
  MPI_Finalize();
  if (rank == 0 && !failures) std::printf("host: well\n");
  return failures != 0;
}
