// What ranks of MPI do beside exchanges: they compare builds, hear of failures, pass messages through channels, and
// open again after a failure. Started by mpirun; $1: the case; `large`: 2^31 bytes and more, which takes 9 GB.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/world_of_test.h"

namespace {

int failures = 0;
int64_t rank = -1;

void Expect(bool ok, const std::string& what) {
  if (ok) return;
  std::printf("FAILED: rank %lld: %s\n", static_cast<long long>(rank), what.c_str());
  ++failures;
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct World {
  struct kiln_mpi* mpi = nullptr;
  char error[512] = "";
  World() {
    kiln_model_mpi_open(&mpi, nullptr, error, sizeof error);
    if (mpi) rank = comm()->device;
  }
  ~World() { kiln_model_mpi_close(mpi); }
  const kiln_comm* comm() const { return kiln_model_mpi_comm(mpi); }
  std::string text() const { return kiln_model_mpi_error(mpi); }
  int Gather(int64_t value, std::vector<int64_t>* all) const {
    std::vector<int64_t> group(static_cast<size_t>(started_ranks()));
    std::iota(group.begin(), group.end(), 0);
    all->resize(group.size());
    return comm()->gather(comm()->self, rank, group.data(), started_ranks(), &value, all->data(), sizeof value);
  }
  bool Works() const {
    std::vector<int64_t> all;
    return Gather(rank, &all) == 0 && all[1] == 1 && all.back() == started_ranks() - 1;
  }
};

void Builds() {
  const char* mine = std::getenv("OMPI_COMM_WORLD_RANK");
  set_program(started_ranks(), std::strcmp(mine, "1") == 0 ? "model_2" : "model_1");
  const World w;
  Expect(!w.mpi && Has(w.error, "rank 1 runs the build model_2, and rank 0 runs model_1"), w.error);
}

void Count() {
  set_program(started_ranks() + 1, "world");
  const World w;
  Expect(!w.mpi && Has(w.error, "ranks of MPI for " + std::to_string(started_ranks() + 1) + " devices"), w.error);
}

// A rank whose run failed; then all go on in a new world.
void Failure() {
  {
    const World w;
    std::vector<int64_t> all;
    int code = KILN_COMMUNICATION;
    if (rank == 1)
      w.comm()->fail(w.comm()->self, rank, KILN_CUSTOM_CALL);
    else
      code = w.Gather(1, &all);
    Expect(code == KILN_COMMUNICATION, "the status " + std::to_string(code));
    Expect(Has(w.text(), rank == 1 ? "the run of this rank failed" : "rank 1 failed with status 5"), w.text());
    Expect(w.Gather(1, &all) != 0, "a failed world fails");
  }
  const World again;
  Expect(again.mpi && again.Works(), std::string("opened again: ") + again.error);
}

void Late() {
  const World w;
  kiln_model_mpi_set_timeout(w.mpi, 200);
  std::vector<int64_t> all;
  if (rank == 1) sleep(1);
  const int code = w.Gather(1, &all);
  Expect(code == KILN_TIMEOUT, "the status " + std::to_string(code) + " " + w.text());
  Expect(Has(w.text(), rank == 1 ? "waited for this rank, 1, in vain" : "rank 1 did not come within 200 ms"), w.text());
}

void Abort() {
  const World w;
  std::vector<int64_t> all;
  std::thread other;
  if (rank == 0) other = std::thread([&] { usleep(50000), kiln_model_mpi_abort(w.mpi); });
  if (rank == 1) sleep(1);
  const int code = w.Gather(1, &all);
  Expect(code == KILN_COMMUNICATION, "the status " + std::to_string(code));
  Expect(Has(w.text(), rank == 0 ? "the host program ended the run" : "rank 0 failed"), w.text());
  if (rank == 0) other.join();
}

// Infeed and outfeed belong to the process; ranks 0 and 1 send each other more than MPI buffers, both before they
// receive.
void Queues() {
  const World w;
  const kiln_comm& c = *w.comm();
  int64_t value = rank * 10, got = -1;
  Expect(c.send(c.self, rank, KILN_INFEED, &value, sizeof value) == 0, "infeed");
  Expect(c.receive(c.self, rank, KILN_INFEED, &got, sizeof got) == 0 && got == value, "infeed's value");
  Expect(c.send(c.self, rank, KILN_OUTFEED, &value, sizeof value) == 0, "outfeed");
  Expect(c.receive(c.self, rank, KILN_OUTFEED, &got, sizeof got) == 0 && got == value, "outfeed's value");
  Expect(kiln_model_mpi_connect(w.mpi, 5, 0, 1) == 0 && kiln_model_mpi_connect(w.mpi, 6, 1, 0) == 0, "connect");
  Expect(kiln_model_mpi_connect(w.mpi, 7, 0, static_cast<int32_t>(started_ranks())) == KILN_DEVICE, "no such rank");
  constexpr size_t kMany = 1 << 20;
  for (int turn = 0; turn < 10 && rank < 2; ++turn) {
    std::vector<int64_t> out(kMany, rank + turn), in(kMany, -1);
    const auto bytes = static_cast<int64_t>(kMany * sizeof(int64_t));
    Expect(c.send(c.self, rank, 5 + rank, out.data(), bytes) == 0, "send: " + w.text());
    Expect(c.receive(c.self, rank, 6 - rank, in.data(), bytes) == 0, "receive: " + w.text());
    Expect(in[0] == 1 - rank + turn && in[kMany - 1] == in[0], "the other's message");
  }
  Expect(w.Works(), "after the channels");
  // Rank 2 ends the world when the others are through.
  Expect(kiln_model_mpi_connect(w.mpi, 8, 0, 2) == 0 && kiln_model_mpi_connect(w.mpi, 9, 1, 2) == 0, "connect");
  for (int64_t from = 0; from < 2; ++from)
    if (rank == from) Expect(c.send(c.self, rank, 8 + from, &value, sizeof value) == 0, "send: " + w.text());
  for (int64_t from = 0; from < 2 && rank == 2; ++from)
    Expect(c.receive(c.self, rank, 8 + from, &got, sizeof got) == 0 && got == from * 10, "receive: " + w.text());
  kiln_model_mpi_set_timeout(w.mpi, 2000);
  if (rank == 2) {
    Expect(c.send(c.self, rank, 5, &value, sizeof value) == KILN_COMMUNICATION, "a channel of others");
    Expect(Has(w.text(), "channel 5 leads from rank 0, and this is rank 2"), w.text());
  } else {
    std::vector<int64_t> all;
    const int code = w.Gather(1, &all);
    Expect(code == KILN_COMMUNICATION && Has(w.text(), "rank 2 failed"), std::to_string(code) + " " + w.text());
  }
}

// A channel that nobody connected is a queue of the process.
void Unconnected() {
  const World w;
  const kiln_comm& c = *w.comm();
  int64_t got = -1;
  kiln_model_mpi_set_timeout(w.mpi, 100);
  Expect(c.receive(c.self, rank, 9, &got, sizeof got) == KILN_TIMEOUT, "a channel that nobody connected");
  Expect(Has(w.text(), "channel 9"), w.text());
}

// More bytes than an int counts.
void Large() {
  const World w;
  const int64_t bytes = (int64_t{1} << 31) + 4096, source[] = {1, 0}, group[] = {0, 1};
  std::vector<char> mine(static_cast<size_t>(bytes), static_cast<char>(rank + 1)), got(mine.size());
  mine.back() = 9;
  const kiln_exchange x = {KILN_PERMUTE, 2, 1, &bytes, source, 0, nullptr, nullptr};
  const void* array = mine.data();
  void* result = got.data();
  Expect(w.comm()->exchange(w.comm()->self, rank, &x, group, &array, &result) == 0, w.text());
  Expect(got[0] == 2 - rank && got[mine.size() - 2] == 2 - rank && got.back() == 9, "the other's array");
}

constexpr struct {
  const char* name;
  void (*run)();
} kCases[] = {{"builds", Builds}, {"count", Count},   {"failure", Failure},         {"late", Late},
              {"abort", Abort},   {"queues", Queues}, {"unconnected", Unconnected}, {"large", Large}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  set_program(started_ranks(), "world");
  for (const auto& c : kCases)
    if (std::strcmp(argv[1], c.name) == 0) c.run();
  if (failures == 0 && std::strcmp(std::getenv("OMPI_COMM_WORLD_RANK"), "0") == 0) std::printf("%s: well\n", argv[1]);
  std::fflush(stdout);
  // Ranks of a failed world do not finalise MPI.
  _exit(failures != 0);
}
