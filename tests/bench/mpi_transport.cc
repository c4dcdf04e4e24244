// Exchanges of kiln over MPI beside plain calls of MPI that move the same bytes, as OSU's micro-benchmarks time them.
// Started by mpirun; ./dev mpi --benchmark builds it with Open MPI's header.
//
// MPI_Allreduce may combine in any order; kiln's reductions combine in the order of ranks, with the program's function.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#include "tests/mpi/world_of_test.h"

namespace {

constexpr int64_t kLargest = 64 << 20;
constexpr int64_t kBytes[] = {8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, kLargest};

void Add(const void*, void* into, const void* other, int64_t elements) {
  auto* a = static_cast<float*>(into);
  const auto* b = static_cast<const float*>(other);
  for (int64_t k = 0; k < elements; ++k) a[k] += b[k];
}

// Microseconds of a call of each: medians of batches that take turns, each as long as its slowest rank.
struct Pair {
  double kiln, mpi;
};

double Batch(int calls, const std::function<void()>& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int k = 0; k < calls; ++k) call();
  double mine = (MPI_Wtime() - start) / calls * 1e6, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double Median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

Pair Time(int64_t bytes, const std::function<void()>& kiln, const std::function<void()>& mpi) {
  const bool small = bytes <= 32 << 10;
  const int calls = small ? 200 : bytes <= 2 << 20 ? 20 : 2, batches = small ? 51 : 7;
  std::vector<double> of_kiln, of_mpi;
  for (int batch = 0; batch < batches; ++batch) {
    of_kiln.push_back(Batch(calls, kiln));
    of_mpi.push_back(Batch(calls, mpi));
  }
  return {Median(of_kiln), Median(of_mpi)};
}

}  // namespace

int main(int argc, char** argv) {
  // The size alone, or all of them.
  const int64_t only = argc > 1 ? std::atoll(argv[1]) : 0;
  int level = 0, rank = 0, ranks = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  set_program(ranks, "benchmark");
  struct kiln_mpi* mpi = nullptr;
  char error[512];
  if (kiln_model_mpi_open(&mpi, nullptr, error, sizeof error)) return std::printf("%s\n", error), 1;
  const kiln_comm& comm = *kiln_model_mpi_comm(mpi);
  std::vector<int64_t> group(static_cast<size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  std::vector<char> x(kLargest), y(kLargest);
  const auto exchange = [&](kiln_exchange_kind kind, int64_t bytes) {
    const kiln_exchange e = {kind, ranks, 1, &bytes, nullptr, 4, Add, nullptr};
    const void* array = x.data();
    void* result = y.data();
    if (comm.exchange(comm.self, comm.device, &e, group.data(), &array, &result)) MPI_Abort(MPI_COMM_WORLD, 1);
  };
  if (rank == 0)
    std::printf("%d ranks, microseconds (ratio of kiln's time to MPI's)\n%12s %30s %30s %30s\n", ranks, "bytes",
                "all-reduce", "all-gather", "all-to-all");
  for (const int64_t bytes : kBytes) {
    if (only && bytes != only) continue;
    const auto part = std::max<int64_t>(bytes / ranks, 1);
    const int count = static_cast<int>(part);
    const auto all_to_all = part * ranks;
    const Pair times[] = {
        Time(
            bytes, [&] { exchange(KILN_ALL_REDUCE, bytes); },
            [&] {
              MPI_Allreduce(x.data(), y.data(), static_cast<int>(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            }),
        Time(
            bytes, [&] { exchange(KILN_ALL_GATHER, part); },
            [&] { MPI_Allgather(x.data(), count, MPI_BYTE, y.data(), count, MPI_BYTE, MPI_COMM_WORLD); }),
        Time(
            bytes, [&] { exchange(KILN_ALL_TO_ALL, all_to_all); },
            [&] { MPI_Alltoall(x.data(), count, MPI_BYTE, y.data(), count, MPI_BYTE, MPI_COMM_WORLD); })};
    if (rank) continue;
    std::printf("%12lld", static_cast<long long>(bytes));
    for (const Pair& t : times) std::printf("   %9.1f / %9.1f (%4.2f)", t.kiln, t.mpi, t.kiln / t.mpi);
    std::printf("\n");
    std::fflush(stdout);
  }
  kiln_model_mpi_close(mpi);
  MPI_Finalize();
}
