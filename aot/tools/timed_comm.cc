#include "aot/tools/timed_comm.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "aot/tools/span.h"

namespace kiln {
namespace {

// Messages between two devices are exchanges of one device here: nobody knows when the other sent them.
enum { kGather = -1, kMessage = -2 };

size_t KeyOf(const kiln_exchange& x, const int64_t* group) {
  const auto members = static_cast<size_t>(x.members), arrays = static_cast<size_t>(x.arrays);
  return absl::HashOf(x.kind, absl::MakeSpan(group, members), absl::MakeSpan(x.bytes, arrays));
}

size_t KeyOfMessages(int64_t device) { return absl::HashOf(int{kMessage}, device); }

}  // namespace

// While one of the functions runs.
class TimedComm::Call {
 public:
  explicit Call(void* self) : timed_(*static_cast<TimedComm*>(self)) {}

  const kiln_comm& comm() const { return timed_.real_; }

  // The device came when the call began.
  int32_t Met(size_t key, int32_t status) {
    Meet({key, begin_, 0});
    return status;
  }

  void* Offered(size_t key, void* offered) {
    if (offered) timed_.begun_[offered] = {key, begin_, NowUs() - begin_};
    return offered;
  }

  int32_t Taken(const void* offered, int32_t status) {
    const auto begun = timed_.begun_.find(offered);
    Meet(begun->second);
    timed_.begun_.erase(begun);
    return status;
  }

 private:
  void Meet(const Begun& b) {
    const double end = NowUs();
    timed_.met_.push_back({b.key, b.came, begin_, end, b.spent + end - begin_});
  }

  TimedComm& timed_;
  const double begin_ = NowUs();
};

TimedComm::TimedComm(const kiln_comm& comm, bool early) : face_(comm), real_(comm) {
  face_.self = this;
  face_.gather = [](void* self, int64_t device, const int64_t* group, int64_t members, const void* mine, void* all,
                    int64_t bytes) {
    Call call(self);
    const kiln_comm& c = call.comm();
    const size_t key = absl::HashOf(int{kGather}, absl::MakeSpan(group, static_cast<size_t>(members)), bytes);
    return call.Met(key, c.gather(c.self, device, group, members, mine, all, bytes));
  };
  face_.send = [](void* self, int64_t device, int64_t channel, const void* data, int64_t bytes) {
    Call call(self);
    const kiln_comm& c = call.comm();
    return call.Met(KeyOfMessages(device), c.send(c.self, device, channel, data, bytes));
  };
  face_.receive = [](void* self, int64_t device, int64_t channel, void* data, int64_t bytes) {
    Call call(self);
    const kiln_comm& c = call.comm();
    return call.Met(KeyOfMessages(device), c.receive(c.self, device, channel, data, bytes));
  };
  face_.fail = [](void* self, int64_t device, int32_t status) {
    const Call call(self);
    call.comm().fail(call.comm().self, device, status);
  };
  face_.exchange = [](void* self, int64_t device, const kiln_exchange* what, const int64_t* group,
                      const void* const* arrays, void* const* results) {
    Call call(self);
    const kiln_comm& c = call.comm();
    return call.Met(KeyOf(*what, group), c.exchange(c.self, device, what, group, arrays, results));
  };
  if (!early || !real_.offer) {
    face_.offer = nullptr;
    face_.take = nullptr;
    return;
  }
  face_.offer = [](void* self, int64_t device, const kiln_exchange* what, const int64_t* group,
                   const void* const* arrays, void* const* results) {
    Call call(self);
    const kiln_comm& c = call.comm();
    return call.Offered(KeyOf(*what, group), c.offer(c.self, device, what, group, arrays, results));
  };
  face_.take = [](void* self, int64_t device, void* offered, const kiln_exchange* what, void* const* results) {
    Call call(self);
    const kiln_comm& c = call.comm();
    return call.Taken(offered, c.take(c.self, device, offered, what, results));
  };
}

std::vector<MetExchange> TimedComm::Take() { return std::exchange(met_, {}); }

std::vector<double> LateUs(const std::vector<std::vector<MetExchange>>& devices) {
  // When the last came, of each exchange of a key.
  absl::flat_hash_map<size_t, std::vector<double>> last;
  const auto for_each = [&](const std::vector<MetExchange>& met, const auto& body) {
    absl::flat_hash_map<size_t, size_t> count;
    for (const MetExchange& x : met) {
      std::vector<double>& all = last[x.key];
      const size_t k = count[x.key]++;
      if (k == all.size()) all.push_back(x.came);
      body(x, all[k]);
    }
  };
  for (const auto& met : devices)
    for_each(met, [](const MetExchange& x, double& came) { came = std::max(came, x.came); });
  std::vector<double> late;
  for (const auto& met : devices) {
    double& us = late.emplace_back(0);
    for_each(met, [&](const MetExchange& x, double came) { us += std::clamp(came, x.begin, x.end) - x.begin; });
  }
  return late;
}

}  // namespace kiln
