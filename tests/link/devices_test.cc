// Devices that never come, come late, fail before their run or in the middle of it: every other device's run ends with
// an error, and after a reset all is well again. $1: how many runs.
#include "devices.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int kDevices = 4;
constexpr int64_t kShort = 15, kLong = 600000;  // milliseconds

int failures = 0;
void Expect(bool ok, const char* what, int run) {
  if (!ok) std::printf("FAILED: run %d: %s\n", run, what), ++failures;
}

// A device's comm that fails at its `left`-th meeting, as one whose memory runs out does. Without exchanges the runtime
// makes them of gathers.
struct Failing {
  kiln_comm face, real;
  int left;
  Failing(const kiln_comm& comm, int meetings, bool exchanges) : face(comm), real(comm), left(meetings) {
    face.self = this;
    face.exchange = nullptr;
    face.offer = nullptr;
    face.take = nullptr;
    if (exchanges) {
      face.offer = [](void* self, int64_t device, const kiln_exchange* what, const int64_t* group,
                      const void* const* arrays, void* const* results) -> void* {
        auto* f = static_cast<Failing*>(self);
        return f->left-- > 0 ? f->real.offer(f->real.self, device, what, group, arrays, results) : nullptr;
      };
      face.take = [](void* self, int64_t device, void* offered, const kiln_exchange* what, void* const* results) {
        auto* f = static_cast<Failing*>(self);
        return f->real.take(f->real.self, device, offered, what, results);
      };
      face.exchange = [](void* self, int64_t device, const kiln_exchange* what, const int64_t* group,
                         const void* const* arrays, void* const* results) {
        auto* f = static_cast<Failing*>(self);
        return f->left-- > 0 ? f->real.exchange(f->real.self, device, what, group, arrays, results) : 1;
      };
    }
    face.gather = [](void* self, int64_t device, const int64_t* group, int64_t members, const void* mine, void* all,
                     int64_t bytes) {
      auto* f = static_cast<Failing*>(self);
      return f->left-- > 0 ? f->real.gather(f->real.self, device, group, members, mine, all, bytes) : 1;
    };
    face.fail = [](void* self, int64_t device, int32_t status) {
      auto* f = static_cast<Failing*>(self);
      f->real.fail(f->real.self, device, status);
    };
  }
};

enum Trouble { kNone, kNeverComes, kLate, kWrongCall, kFailsInTheMiddle, kTroubles };

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 60;
  kiln_world* world = devices_world_create(kDevices);
  if (!world) return 1;
  std::mt19937 random(1);
  long count[kTroubles] = {}, in_time = 0;
  std::chrono::steady_clock::duration longest{};
  for (int run = 0; run < runs; ++run) {
    const auto trouble = static_cast<Trouble>(random() % kTroubles);
    const int which = static_cast<int>(random() % kDevices), meetings = static_cast<int>(random() % 3);
    const auto late = std::chrono::milliseconds(random() % 30);
    // Only what waits for the limit has a short one: a busy machine makes no other run fail.
    devices_world_set_timeout(world, trouble == kNeverComes || trouble == kLate ? kShort : kLong);
    float x[kDevices][16], y[kDevices][16];
    int32_t status[kDevices];
    std::vector<std::thread> threads;
    const auto start = std::chrono::steady_clock::now();
    for (int d = 0; d < kDevices; ++d)
      threads.emplace_back([&, d] {
        const Trouble mine = d == which ? trouble : kNone;
        status[d] = DEVICES_COMMUNICATION;
        if (mine == kNeverComes) return;
        if (mine == kLate) std::this_thread::sleep_for(late);
        for (float& v : x[d]) v = 1;
        const kiln_comm* comm = devices_world_comm(world, d);
        constexpr int kNever = 1 << 30;
        Failing face(*comm, mine == kFailsInTheMiddle ? meetings : kNever, run % 2);
        devices::Context context;
        context.set_comm(&face.face);
        status[d] =
            devices::run(context, mine == kWrongCall ? devices::Argument_input() : devices::Argument_input(x[d]), y[d])
                .code;
      });
    for (std::thread& t : threads) t.join();
    longest = std::max(longest, std::chrono::steady_clock::now() - start);
    ++count[trouble];
    int good = 0;
    for (int d = 0; d < kDevices; ++d) good += status[d] == DEVICES_OK && y[d][5] == 64;
    switch (trouble) {
      case kNone:
        Expect(good == kDevices, "a run of all devices", run);
        break;
      case kLate:  // within the limit or not
        Expect(good == kDevices || good == 0, "a late device: all or none", run);
        in_time += good == kDevices;
        break;
      default:
        Expect(good == 0, "a device failed and a run did not", run);
    }
    for (int d = 0; d < kDevices && trouble == kNeverComes; ++d)
      Expect(d == which || status[d] == DEVICES_TIMEOUT, "the status tells of the time limit", run);
    Expect(trouble != kWrongCall || status[which] == DEVICES_NULL_POINTER, "the wrong call's own status", run);
    devices_world_reset(world);
  }
  Expect(devices_world_comm(world, kDevices) == nullptr && devices_world_comm(world, -1) == nullptr, "bounds", 0);
  {
    kiln_comm stranger = *devices_world_comm(world, 0);
    stranger.device = kDevices;
    float x[16] = {}, y[16];
    devices::Context context;
    Expect(devices::run(context, x, y).code == DEVICES_NULL_POINTER, "no comm", 0);
    context.set_comm(&stranger);
    Expect(devices::run(context, x, y).code == DEVICES_DEVICE, "a device that there is not", 0);
  }
  devices_world_destroy(world);
  std::printf(
      "%d runs: %ld well, %ld never came, %ld late (%ld of them in time), %ld wrong calls, %ld failed in the middle; "
      "longest %lld ms\n",
      runs, count[kNone], count[kNeverComes], count[kLate], in_time, count[kWrongCall], count[kFailsInTheMiddle],
      static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(longest).count()));
  return failures != 0;
}
