// How long the runs of a device wait in exchanges.
#pragma once

#include <chrono>
#include <utility>

#include "runtime_min/abi.h"

namespace kiln {

using Microseconds = std::chrono::duration<double, std::micro>;

// A device's comm that measures its functions. It can keep exchanges from beginning early.
class TimedComm {
 public:
  TimedComm(const kiln_comm& comm, bool early) : face_(comm), real_(comm) {
    face_.self = this;
    face_.gather = [](void* self, int64_t device, const int64_t* group, int64_t members, const void* mine, void* all,
                      int64_t bytes) {
      const Call call(self);
      return call.comm.gather(call.comm.self, device, group, members, mine, all, bytes);
    };
    face_.send = [](void* self, int64_t device, int64_t channel, const void* data, int64_t bytes) {
      const Call call(self);
      return call.comm.send(call.comm.self, device, channel, data, bytes);
    };
    face_.receive = [](void* self, int64_t device, int64_t channel, void* data, int64_t bytes) {
      const Call call(self);
      return call.comm.receive(call.comm.self, device, channel, data, bytes);
    };
    face_.fail = [](void* self, int64_t device, int32_t status) {
      const Call call(self);
      call.comm.fail(call.comm.self, device, status);
    };
    face_.exchange = [](void* self, int64_t device, const kiln_exchange* what, const int64_t* group,
                        const void* const* arrays, void* const* results) {
      const Call call(self);
      return call.comm.exchange(call.comm.self, device, what, group, arrays, results);
    };
    face_.offer = nullptr;
    if (!early || !real_.offer) return;
    face_.offer = [](void* self, int64_t device, const kiln_exchange* what, const int64_t* group,
                     const void* const* arrays, void* const* results) {
      const Call call(self);
      return call.comm.offer(call.comm.self, device, what, group, arrays, results);
    };
    face_.take = [](void* self, int64_t device, void* offered, const kiln_exchange* what, void* const* results) {
      const Call call(self);
      return call.comm.take(call.comm.self, device, offered, what, results);
    };
  }
  TimedComm(const TimedComm&) = delete;

  const kiln_comm* face() const { return &face_; }
  // Since the last time that it was asked.
  double TakeUs() { return std::exchange(us_, 0); }

 private:
  // While one of the functions runs.
  struct Call {
    explicit Call(void* self) : timed(*static_cast<TimedComm*>(self)), comm(timed.real_) {}
    ~Call() { timed.us_ += Microseconds(std::chrono::steady_clock::now() - begin).count(); }
    TimedComm& timed;
    const kiln_comm& comm;
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  };

  kiln_comm face_;
  const kiln_comm real_;
  double us_ = 0;
};

}  // namespace kiln
