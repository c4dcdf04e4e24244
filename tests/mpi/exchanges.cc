// Random exchanges over MPI and over threads of one process: the same bits. Started by mpirun; $1: how many, $2: the
// first seed. Every rank runs all devices as threads too, and compares its own results.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/world_of_test.h"

namespace {

using Bytes = std::vector<char>;

// An operation whose result depends on the order, for elements of any size.
void Combine(const void* how, void* into, const void* other, int64_t elements) {
  const auto width = *static_cast<const int64_t*>(how);
  auto* a = static_cast<unsigned char*>(into);
  const auto* b = static_cast<const unsigned char*>(other);
  for (int64_t k = 0; k < elements * width; ++k) a[k] = static_cast<unsigned char>(a[k] * 5 + b[k]);
}

void Add(const void*, void* into, const void* other, int64_t elements) {
  auto* a = static_cast<float*>(into);
  const auto* b = static_cast<const float*>(other);
  for (int64_t k = 0; k < elements; ++k) a[k] += b[k];
}

// What one seed has all devices do.
struct Work {
  int32_t kind = 0;
  bool gather = false, in_place = false, add = false;
  int64_t width = 1;
  std::vector<std::vector<int64_t>> groups;
  std::vector<int64_t> group_of;       // by device
  std::vector<int64_t> bytes, source;  // of arrays; of a permute
};

int64_t SomeBytes(std::mt19937& random, int64_t unit) {
  static constexpr int64_t kMost[] = {8, 1 << 10, 9 << 10, 80 << 10, 300 << 10, 20 << 20};
  const int64_t most = kMost[random() % (random() % 16 ? 5 : 6)];
  return static_cast<int64_t>(random()) % (most / unit + 1) * unit;
}

Work WorkOf(uint32_t seed, int64_t devices) {
  std::mt19937 random(seed);
  Work w;
  w.kind = static_cast<int32_t>(random() % 5);
  w.gather = random() % 6 == 0;
  w.in_place = !w.gather && w.kind == KILN_ALL_REDUCE && random() % 2;
  w.add = random() % 2;
  w.width = w.add ? 4 : int64_t{1} << random() % 5;
  std::vector<int64_t> order(static_cast<size_t>(devices));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  int64_t size = 1 + static_cast<int64_t>(random()) % devices;
  while (!w.gather && devices % size) ++size;
  w.group_of.resize(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    if (k % static_cast<size_t>(size) == 0) w.groups.emplace_back();
    w.groups.back().push_back(order[k]);
    w.group_of[static_cast<size_t>(order[k])] = static_cast<int64_t>(w.groups.size()) - 1;
  }
  const bool blocks = w.kind == KILN_REDUCE_SCATTER || w.kind == KILN_ALL_TO_ALL;
  const auto arrays = w.gather ? 1 : 1 + random() % 4;
  for (size_t a = 0; a < arrays; ++a) w.bytes.push_back(SomeBytes(random, w.width * (blocks ? size : 1)));
  for (int64_t k = 0; k < size; ++k) w.source.push_back(static_cast<int64_t>(random() % (size + 1)) - 1);
  return w;
}

std::vector<Bytes> Given(const Work& w, uint32_t seed, int64_t device) {
  std::mt19937 random(seed * 977 + static_cast<uint32_t>(device));
  std::vector<Bytes> out;
  for (int64_t n : w.bytes) {
    Bytes b(static_cast<size_t>(n));
    for (size_t k = 0; k + 4 <= b.size() && w.add; k += 4) {
      const float f = static_cast<float>(random()) / 1e6f;
      std::memcpy(&b[k], &f, 4);
    }
    for (size_t k = 0; k < b.size() && !w.add; ++k) b[k] = static_cast<char>(random());
    out.push_back(std::move(b));
  }
  return out;
}

int64_t ResultBytes(const Work& w, int64_t bytes, int64_t members) {
  if (w.gather || w.kind == KILN_ALL_GATHER) return bytes * members;
  return w.kind == KILN_REDUCE_SCATTER ? bytes / members : bytes;
}

// What a device gets; its status.
int Do(const Work& w, uint32_t seed, const kiln_comm& comm, std::vector<Bytes>* out) {
  std::vector<Bytes> given = Given(w, seed, comm.device);
  const std::vector<int64_t>& group = w.groups[static_cast<size_t>(w.group_of[static_cast<size_t>(comm.device)])];
  const auto members = static_cast<int64_t>(group.size());
  std::vector<const void*> arrays;
  std::vector<void*> results;
  out->clear();
  for (size_t a = 0; a < given.size(); ++a)
    out->emplace_back(static_cast<size_t>(ResultBytes(w, w.bytes[a], members)), char{7});
  for (size_t a = 0; a < given.size(); ++a) {
    arrays.push_back(given[a].data());
    results.push_back(w.in_place ? given[a].data() : (*out)[a].data());
  }
  int code = 0;
  if (w.gather) {
    code = comm.gather(comm.self, comm.device, group.data(), members, arrays[0], results[0], w.bytes[0]);
  } else {
    const kiln_exchange x = {w.kind,
                             members,
                             static_cast<int64_t>(arrays.size()),
                             w.bytes.data(),
                             w.source.data(),
                             w.width,
                             w.add ? Add : Combine,
                             &w.width};
    code = comm.exchange(comm.self, comm.device, &x, group.data(), arrays.data(), results.data());
  }
  if (w.in_place) *out = std::move(given);
  return code;
}

// The result of one device where all are threads.
std::vector<Bytes> InThreads(const Work& w, uint32_t seed, int64_t devices, int64_t device) {
  kiln_world* world = kiln_model_world_create(devices);
  std::vector<std::vector<Bytes>> out(static_cast<size_t>(devices));
  std::vector<std::thread> threads;
  for (int64_t d = 0; d < devices; ++d)
    threads.emplace_back([&, d] {
      if (Do(w, seed, *kiln_model_world_comm(world, d), &out[static_cast<size_t>(d)])) std::abort();
    });
  for (std::thread& t : threads) t.join();
  kiln_model_world_destroy(world);
  return out[static_cast<size_t>(device)];
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 100;
  const int first = argc > 2 ? std::atoi(argv[2]) : 0;
  const int64_t devices = started_ranks();
  set_program(devices, "exchanges");
  struct kiln_mpi* mpi = nullptr;
  char error[512];
  if (kiln_model_mpi_open(&mpi, nullptr, error, sizeof error)) return std::printf("FAILED: %s\n", error), 1;
  const kiln_comm& comm = *kiln_model_mpi_comm(mpi);
  int wrong = 0, by_kind[6] = {};
  for (int k = 0; k < count; ++k) {
    const auto seed = static_cast<uint32_t>(first + k);
    const Work w = WorkOf(seed, devices);
    std::vector<Bytes> got;
    if (Do(w, seed, comm, &got)) return std::printf("FAILED: seed %u: %s\n", seed, kiln_model_mpi_error(mpi)), 1;
    ++by_kind[w.gather ? 5 : w.kind];
    if (got != InThreads(w, seed, devices, comm.device)) {
      std::printf("FAILED: seed %u: rank %lld differs from threads\n", seed, static_cast<long long>(comm.device));
      ++wrong;
    }
  }
  if (comm.device == 0)
    std::printf(
        "%d exchanges on %lld ranks, equal to threads: %d all-reduce, %d reduce-scatter, %d all-gather, "
        "%d all-to-all, %d permute, %d gather\n",
        count - wrong, static_cast<long long>(devices), by_kind[0], by_kind[1], by_kind[2], by_kind[3], by_kind[4],
        by_kind[5]);
  kiln_model_mpi_close(mpi);
  return wrong != 0;
}
