// Exchanges beside the runs of devices that are threads: a device that fails between the beginning and the end of one
// takes its arrays away, and nobody reads or writes them any more. `$1`: how many runs. In //tests/tsan a thread
// that does is a race.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tests/mpi/world_of_test.h"

namespace {

constexpr int64_t kDevices = 3;
constexpr int64_t kElements = kDevices * 100000;
constexpr uint32_t kGone = 0xdeadbeef;
using Array = std::vector<uint32_t>;

void Add(const void*, void* into, const void* other, int64_t elements) {
  auto* a = static_cast<uint32_t*>(into);
  const auto* b = static_cast<const uint32_t*>(other);
  for (int64_t k = 0; k < elements; ++k) a[k] += b[k];
}

// Some exchanges one behind the other, each under way while the next begins.
class Run {
 public:
  Run(kiln_world* world, int64_t device, uint32_t seed) : comm_(*kiln_model_world_comm(world, device)), random_(seed) {
    std::iota(group_.begin(), group_.end(), 0);
    const int64_t most = Below(4) + 1;
    // All devices draw the same numbers, so that they make the same exchanges.
    const bool somebody_fails = Below(2) == 1;
    const int64_t who = Below(kDevices), when = Below(most);
    if (somebody_fails && who == device) fails_at_ = when;
    for (int64_t k = 0; k < most; ++k) {
      const auto kind = static_cast<int32_t>(Below(4));
      x_.push_back({kind, kDevices, 1, &kBytes, nullptr, 4, Add, nullptr});
      given_.emplace_back(kElements, static_cast<uint32_t>(device + k));
      got_.emplace_back(static_cast<size_t>(kElements) * (kind == KILN_ALL_GATHER ? kDevices : 1), 0u);
    }
  }

  // 0, or the status that it failed with.
  int Go() {
    std::vector<void*> offered;
    int code = 0;
    for (size_t k = 0; k < x_.size() && !code; ++k) {
      const void* array = given_[k].data();
      void* result = got_[k].data();
      offered.push_back(comm_.offer(comm_.self, comm_.device, &x_[k], group_.data(), &array, &result));
      if (!offered.back()) code = KILN_COMMUNICATION;
      if (static_cast<int64_t>(k) == fails_at_) code = KILN_COMMUNICATION;
      if (k > 0 && !code) code = comm_.take(comm_.self, comm_.device, offered[k - 1], &x_[k - 1], nullptr);
    }
    if (!code) code = comm_.take(comm_.self, comm_.device, offered.back(), &x_.back(), nullptr);
    if (code) comm_.fail(comm_.self, comm_.device, code);
    for (size_t k = 0; k < x_.size(); ++k) wrong_ += !code && !IsRight(k);
    for (auto* arrays : {&given_, &got_})
      for (Array& a : *arrays) std::fill(a.begin(), a.end(), kGone);
    return code;
  }

  // Asked when all runs are over.
  bool Well() const {
    for (const auto* arrays : {&given_, &got_})
      for (const Array& a : *arrays)
        for (uint32_t v : a)
          if (v != kGone) return false;
    return wrong_ == 0;
  }
  bool fails() const { return fails_at_ >= 0; }

 private:
  bool IsRight(size_t k) const {
    const auto first = static_cast<uint32_t>(k), last = static_cast<uint32_t>(k + kDevices - 1);
    const Array& got = got_[k];
    switch (x_[k].kind) {
      case KILN_ALL_REDUCE:
        return got[0] == kDevices * (first + last) / 2 && got.back() == got[0];
      case KILN_REDUCE_SCATTER:
        return got[0] == kDevices * (first + last) / 2 && got[kElements / kDevices - 1] == got[0];
      default:
        return got[0] == first && got.back() == last;
    }
  }

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_()) % n; }

  static constexpr int64_t kBytes = kElements * 4;
  const kiln_comm& comm_;
  std::mt19937 random_;
  std::vector<int64_t> group_ = std::vector<int64_t>(kDevices);
  int64_t fails_at_ = -1;
  std::vector<kiln_exchange> x_;
  std::vector<Array> given_, got_;
  int wrong_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint32_t runs = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 60;
  kiln_world* world = kiln_model_world_create(kDevices);
  int wrong = 0, failed = 0;
  for (uint32_t seed = 0; seed < runs; ++seed) {
    std::vector<Run> all;
    all.reserve(kDevices);
    for (int64_t d = 0; d < kDevices; ++d) all.emplace_back(world, d, seed);
    std::vector<std::thread> devices;
    std::atomic<int> codes{0};
    for (Run& r : all)
      devices.emplace_back([&] {
        if (r.Go()) ++codes;
      });
    for (std::thread& t : devices) t.join();
    bool fails = false, well = true;
    for (const Run& r : all) {
      fails = fails || r.fails();
      well = well && r.Well();
    }
    // Who has all results when another fails has run well.
    if (!well || (fails ? codes == 0 : codes != 0)) {
      std::printf("FAILED: run %u: %d of %lld devices failed\n", seed, codes.load(), static_cast<long long>(kDevices));
      ++wrong;
    }
    failed += fails;
    kiln_model_world_reset(world);
  }
  kiln_model_world_destroy(world);
  std::printf("%u runs, a device failed in %d of them, %d wrong\n", runs, failed, wrong);
  return wrong != 0;
}
