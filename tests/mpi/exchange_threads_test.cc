// Random exchanges between threads, in groups of several sizes side by side, beside what each member has to get. `$1`:
// how many. With --config=tsan also a test of who may touch what when.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tests/mpi/world_of_test.h"

namespace {

constexpr int64_t kDevices = 6;
using Array = std::vector<uint32_t>;
using Arrays = std::vector<Array>;

// An operation whose result depends on the order.
void Combine(const void*, void* into, const void* other, int64_t elements) {
  auto* a = static_cast<uint32_t*>(into);
  const auto* b = static_cast<const uint32_t*>(other);
  for (int64_t k = 0; k < elements; ++k) a[k] = a[k] * 5 + b[k];
}

// What one group does together; the same on all members.
struct Work {
  int32_t kind = 0;
  bool in_place = false;
  std::vector<int64_t> group, source, bytes;

  Work(uint32_t seed, std::vector<int64_t> members) : group(std::move(members)) {
    std::mt19937 random(seed);
    const auto n = static_cast<int64_t>(group.size());
    kind = static_cast<int32_t>(random() % 5);
    in_place = kind == KILN_ALL_REDUCE && random() % 2;
    const int64_t unit = 4 * n;  // a block of each member
    static constexpr int64_t kMost[] = {1, 40, 1500, 20000};
    for (uint32_t k = 0; k <= random() % 4; ++k)
      bytes.push_back(static_cast<int64_t>(random()) % (kMost[random() % 4] + 1) * unit);
    for (int64_t k = 0; k < n; ++k) source.push_back(static_cast<int64_t>(random() % (group.size() + 1)) - 1);
  }

  Array Given(size_t member, size_t a, uint32_t seed) const {
    Array out(static_cast<size_t>(bytes[a]) / 4);
    std::mt19937 random(seed ^ static_cast<uint32_t>(group[member] * 1000 + static_cast<int64_t>(a)));
    for (uint32_t& v : out) v = random();
    return out;
  }

  Array Wanted(size_t member, size_t a, uint32_t seed) const {
    Arrays given;
    for (size_t k = 0; k < group.size(); ++k) given.push_back(Given(k, a, seed));
    const auto block = static_cast<std::ptrdiff_t>(given[0].size() / group.size());
    const auto mine = static_cast<std::ptrdiff_t>(member) * block;
    Array out;
    switch (kind) {
      case KILN_ALL_REDUCE:
      case KILN_REDUCE_SCATTER:
        out = given[0];
        for (size_t k = 1; k < given.size(); ++k)
          Combine(nullptr, out.data(), given[k].data(), static_cast<int64_t>(out.size()));
        return kind == KILN_ALL_REDUCE ? out : Array(out.begin() + mine, out.begin() + mine + block);
      case KILN_ALL_GATHER:
        for (const Array& g : given) out.insert(out.end(), g.begin(), g.end());
        return out;
      case KILN_ALL_TO_ALL:
        for (const Array& g : given) out.insert(out.end(), g.begin() + mine, g.begin() + mine + block);
        return out;
      default:
        return source[member] < 0 ? Array(given[0].size()) : given[static_cast<size_t>(source[member])];
    }
  }
};

// Device `device` takes its part: whether it gets what it has to.
bool Takes(kiln_world* world, int64_t device, const Work& w, uint32_t seed) {
  const kiln_comm& comm = *kiln_model_world_comm(world, device);
  const auto at = static_cast<size_t>(std::find(w.group.begin(), w.group.end(), device) - w.group.begin());
  Arrays given, got;
  for (size_t a = 0; a < w.bytes.size(); ++a) {
    given.push_back(w.Given(at, a, seed));
    got.emplace_back(w.Wanted(at, a, seed).size());
  }
  std::vector<const void*> arrays;
  std::vector<void*> results;
  for (size_t a = 0; a < w.bytes.size(); ++a) {
    arrays.push_back(given[a].data());
    results.push_back(w.in_place ? given[a].data() : got[a].data());
  }
  const kiln_exchange x = {w.kind,
                           static_cast<int64_t>(w.group.size()),
                           static_cast<int64_t>(w.bytes.size()),
                           w.bytes.data(),
                           w.source.data(),
                           4,
                           Combine,
                           nullptr};
  if (comm.exchange(comm.self, device, &x, w.group.data(), arrays.data(), results.data())) return false;
  for (size_t a = 0; a < w.bytes.size(); ++a)
    if ((w.in_place ? given : got)[a] != w.Wanted(at, a, seed)) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t count = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 400;
  kiln_world* world = kiln_model_world_create(kDevices);
  std::atomic<int> wrong{0};
  std::vector<std::thread> devices;
  for (int64_t d = 0; d < kDevices; ++d)
    devices.emplace_back([&, d] {
      for (uint32_t seed = 0; seed < count; ++seed) {
        // All devices in a random order, cut in two: the groups meet side by side.
        std::mt19937 random(seed);
        std::vector<int64_t> order(kDevices);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        const auto cut = order.begin() + static_cast<std::ptrdiff_t>(random() % kDevices);
        const bool first = std::find(order.begin(), cut, d) != cut;
        const Work w(seed * 2 + first,
                     first ? std::vector<int64_t>(order.begin(), cut) : std::vector<int64_t>(cut, order.end()));
        if (!Takes(world, d, w, seed)) {
          std::printf("FAILED: exchange %u on device %lld\n", seed, static_cast<long long>(d));
          ++wrong;
        }
      }
    });
  for (std::thread& t : devices) t.join();
  kiln_model_world_destroy(world);
  std::printf("%u exchanges, %d wrong\n", count, wrong.load());
  return wrong != 0;
}
