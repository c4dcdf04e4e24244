// Several devices in one process, for the evaluator: threads that meet in collectives, and queues between them.
//
// What: a World of replicas x partitions devices. Each device evaluates on a thread of its own inside a Participant;
//   collectives exchange values through the world.
// Guarantees: a device that fails, or waits for longer than the limit, ends the others' waits with an error; nothing
//   hangs. Meetings of one group happen in each member's program order.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/literal.h"

namespace kiln {

class Module;

class World {
 public:
  // Channels of the host program's own queues.
  static constexpr int64_t kInfeed = -1, kOutfeed = -2;

  World(int64_t replicas, int64_t partitions) : replicas(replicas), partitions(partitions) {}
  // Every member of `group` calls it with its own value; all get the members' values in the group's order.
  absl::StatusOr<std::vector<Literal>> Exchange(int64_t device, const Ints& group, Literal mine);
  void Send(int64_t channel, Literal value);
  // Waits for a value.
  absl::StatusOr<Literal> Receive(int64_t channel);
  // Ends every wait.
  void Abort();

  const int64_t replicas, partitions;

 private:
  struct Meeting {
    std::vector<Literal> values;
    size_t arrived = 0, left = 0;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  bool aborted_ = false;
  // By group and by how often that group has met before.
  std::map<std::pair<Ints, int64_t>, Meeting> meetings_;
  std::map<std::pair<Ints, int64_t>, int64_t> met_;
  std::map<int64_t, std::deque<Literal>> queues_;
};

// Makes the calling thread a device of `world` while it lives.
class Participant {
 public:
  Participant(World* world, int64_t device);
  ~Participant();
  Participant(const Participant&) = delete;
  // Of the calling thread; null on a thread that is the only device.
  static const Participant* Current();

  World* const world;
  const int64_t device;

 private:
  const Participant* const outer_;
};

// Evaluates `programs[d]` with `arguments[d]`, one literal for each parameter, as device `d` of `world`: all at once, a
// thread each. Fails with the first cause, not with the waits that it ended.
absl::StatusOr<std::vector<Literal>> EvaluateOnDevices(const std::vector<const Module*>& programs,
                                                       const std::vector<std::vector<Literal>>& arguments,
                                                       World* world);

}  // namespace kiln
