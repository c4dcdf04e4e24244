// A rank that is killed or stopped at a random moment: the others' runs end within the limit and say which rank it was.
// Started by mpirun --enable-recovery; $1: SIGKILL or SIGSTOP, $2: the seed, which names the rank and the moment.
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/world_of_test.h"

namespace {

constexpr int64_t kLimit = 800;  // milliseconds
constexpr int64_t kGrace = 200;  // in which ranks tell each other what they know
constexpr int64_t kBusy = 1500;  // what a busy machine may add

void Add(const void*, void* into, const void* other, int64_t elements) {
  auto* a = static_cast<float*>(into);
  const auto* b = static_cast<const float*>(other);
  for (int64_t k = 0; k < elements; ++k) a[k] += b[k];
}

// One exchange of all ranks, of a kind and a size that all agree on.
int Exchange(const kiln_comm& comm, const std::vector<int64_t>& group, std::mt19937& random, std::vector<float>* x,
             std::vector<float>* y) {
  const auto members = static_cast<int64_t>(group.size());
  static constexpr int64_t kElements[] = {4, 1000, 40000, 600000};
  const int64_t bytes = kElements[random() % 4] * members * 4;
  x->resize(static_cast<size_t>(bytes / 4), 1.0f);
  y->resize(x->size());
  const kiln_exchange e = {static_cast<int32_t>(random() % 2 ? KILN_ALL_REDUCE : KILN_ALL_TO_ALL),
                           members,
                           1,
                           &bytes,
                           nullptr,
                           4,
                           Add,
                           nullptr};
  const void* array = x->data();
  void* result = y->data();
  return comm.exchange(comm.self, comm.device, &e, group.data(), &array, &result);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int signal = std::strcmp(argv[1], "SIGKILL") == 0 ? SIGKILL : SIGSTOP;
  std::mt19937 random(static_cast<uint32_t>(std::stoul(argv[2])));
  const int64_t ranks = started_ranks(), victim = static_cast<int64_t>(random()) % ranks;
  const auto moment = std::chrono::microseconds(random() % 300000);
  set_program(ranks, "faults");
  struct kiln_mpi* mpi = nullptr;
  char error[512];
  if (kiln_model_mpi_open(&mpi, nullptr, error, sizeof error)) return std::printf("FAILED: %s\n", error), 1;
  const kiln_comm& comm = *kiln_model_mpi_comm(mpi);
  std::vector<int64_t> group(static_cast<size_t>(ranks)), pids(group.size());
  std::iota(group.begin(), group.end(), 0);
  const int64_t pid = getpid();
  if (comm.gather(comm.self, comm.device, group.data(), ranks, &pid, pids.data(), sizeof pid)) return 1;
  kiln_model_mpi_set_timeout(mpi, kLimit);
  if (comm.device == victim)
    std::thread([&] {
      std::this_thread::sleep_for(moment);
      kill(getpid(), signal);
    }).detach();
  std::vector<float> x, y;
  int code = 0;
  auto start = std::chrono::steady_clock::now();
  while (!code) {
    start = std::chrono::steady_clock::now();
    code = Exchange(comm, group, random, &x, &y);
  }
  const int64_t ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
  const std::string text = kiln_model_mpi_error(mpi), name = "rank " + std::to_string(victim) + " did not come";
  const bool good = ms <= kLimit + kGrace + kBusy && text.find(name) != std::string::npos;
  std::printf("%s rank %lld: status %d after %lld ms: %s (%s of rank %lld)\n", good ? "well" : "FAILED",
              static_cast<long long>(comm.device), code, static_cast<long long>(ms), text.c_str(), argv[1],
              static_cast<long long>(victim));
  std::fflush(stdout);
  kiln_model_mpi_close(mpi);
  // The job ends when its last process does.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(static_cast<pid_t>(pids[static_cast<size_t>(victim)]), SIGKILL);
  _exit(good ? 0 : 1);
}
