// Random exchanges between threads, in groups of several sizes side by side, beside what each member has to get. `$1`:
// how many. //tests/tsan runs it as a test of who may touch what when.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
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

// What one device gives to and gets from an exchange.
class Part {
 public:
  Part(kiln_world* world, int64_t device, uint32_t seed)
      : comm_(*kiln_model_world_comm(world, device)), seed_(seed), work_(WorkOf(device, seed)) {
    at_ = static_cast<size_t>(std::find(work_.group.begin(), work_.group.end(), device) - work_.group.begin());
    for (size_t a = 0; a < work_.bytes.size(); ++a) {
      given_.push_back(work_.Given(at_, a, seed));
      got_.emplace_back(work_.Wanted(at_, a, seed).size());
    }
    GiveArrays();
    for (size_t a = 0; a < work_.bytes.size(); ++a) {
      results_.push_back(work_.in_place ? given_[a].data() : got_[a].data());
    }
    what_ = {work_.kind,
             static_cast<int64_t>(work_.group.size()),
             static_cast<int64_t>(work_.bytes.size()),
             work_.bytes.data(),
             work_.source.data(),
             4,
             Combine,
             nullptr};
  }

  // What may begin early begins: large arrays stay as they are, of small ones there are copies.
  void Begin() {
    const bool beside = seed_ % 2;
    offered_ = comm_.offer(comm_.self, comm_.device, &what_, work_.group.data(), arrays_.data(),
                           beside ? results_.data() : nullptr);
    for (Array& a : given_)
      if (offered_ && !beside) std::fill(a.begin(), a.end(), 0xdead);
    arrays_.assign(arrays_.size(), nullptr);
    if (!offered_) GiveArrays();
  }
  bool AllNow() {
    return offered_ ||
           !comm_.exchange(comm_.self, comm_.device, &what_, work_.group.data(), arrays_.data(), results_.data());
  }
  bool End() {
    if (offered_ && comm_.take(comm_.self, comm_.device, offered_, &what_, results_.data())) return false;
    for (size_t a = 0; a < work_.bytes.size(); ++a)
      if ((work_.in_place ? given_ : got_)[a] != work_.Wanted(at_, a, seed_)) return false;
    return true;
  }

 private:
  void GiveArrays() {
    arrays_.clear();
    for (const Array& a : given_) arrays_.push_back(a.data());
  }
  // All devices in a random order, cut in two: the groups meet side by side.
  static Work WorkOf(int64_t device, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int64_t> order(kDevices);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    const auto cut = order.begin() + static_cast<std::ptrdiff_t>(random() % kDevices);
    const bool first = std::find(order.begin(), cut, device) != cut;
    using Group = std::vector<int64_t>;
    return Work(seed * 2 + first, first ? Group(order.begin(), cut) : Group(cut, order.end()));
  }

  const kiln_comm& comm_;
  const uint32_t seed_;
  const Work work_;
  size_t at_ = 0;
  Arrays given_, got_;
  std::vector<const void*> arrays_;
  std::vector<void*> results_;
  kiln_exchange what_{};
  void* offered_ = nullptr;
};

// Exchanges [seed, end) begin together and end in an order of this device's own.
bool Takes(kiln_world* world, int64_t device, uint32_t seed, uint32_t end) {
  std::deque<Part> parts;
  bool well = true;
  for (uint32_t k = seed; k < end; ++k) parts.emplace_back(world, device, k);
  for (Part& p : parts) p.Begin();
  for (Part& p : parts) well = p.AllNow() && well;
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed * 100 + static_cast<uint32_t>(device));
  std::shuffle(order.begin(), order.end(), random);
  for (size_t k : order) well = parts[k].End() && well;
  return well;
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t count = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 400;
  kiln_world* world = kiln_model_world_create(kDevices);
  std::atomic<int> wrong{0};
  std::vector<std::thread> devices;
  for (int64_t d = 0; d < kDevices; ++d)
    devices.emplace_back([&, d] {
      for (uint32_t seed = 0, end = 0; seed < count; seed = end) {
        end = std::min(count, seed + 1 + seed % 4);
        if (!Takes(world, d, seed, end)) {
          std::printf("FAILED: one of exchanges %u to %u on device %lld\n", seed, end - 1, static_cast<long long>(d));
          ++wrong;
        }
      }
    });
  for (std::thread& t : devices) t.join();
  kiln_model_world_destroy(world);
  std::printf("%u exchanges, %d wrong\n", count, wrong.load());
  return wrong != 0;
}
