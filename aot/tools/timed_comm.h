// How long the runs of a device are in exchanges.
#pragma once

#include <map>
#include <vector>

#include "runtime_min/abi.h"

namespace kiln {

// An exchange as a device met it. Times are microseconds of one clock.
struct MetExchange {
  size_t key;    // the same for the same kind of exchange of the same devices
  double came;   // from when on others can have what the device gives
  double begin;  // of what it spends there; after `came` where the exchange began early
  double end;
  double spent;
};

// How long each device waited for one that had not come: the k-th exchange of a key is the same one on all devices.
std::vector<double> LateUs(const std::vector<std::vector<MetExchange>>& devices);

// A device's comm that measures its functions. It can keep exchanges from beginning early.
class TimedComm {
 public:
  TimedComm(const kiln_comm& comm, bool early);
  TimedComm(const TimedComm&) = delete;

  const kiln_comm* face() const { return &face_; }
  // Since the last time that it was asked, in the order in which they ended.
  std::vector<MetExchange> Take();

 private:
  class Call;

  kiln_comm face_;
  const kiln_comm real_;
  std::vector<MetExchange> met_;
  struct Begun {
    size_t key;
    double came, spent;
  };
  std::map<const void*, Begun> begun_;  // by what `offer` gave
};

}  // namespace kiln
