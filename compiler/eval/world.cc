#include "compiler/eval/world.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "compiler/base/status.h"
#include "compiler/eval/evaluator.h"

namespace kiln {
namespace {

thread_local const Participant* current = nullptr;
constexpr auto kPatience = std::chrono::seconds(20);

}  // namespace

absl::StatusOr<std::vector<Literal>> World::Exchange(int64_t device, const Ints& group, Literal mine) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::pair<Ints, int64_t> key = {group, met_[{group, device}]++};
  Meeting& m = meetings_[key];
  m.values.resize(group.size());
  const size_t at = std::find(group.begin(), group.end(), device) - group.begin();
  m.values[at] = std::move(mine);
  ++m.arrived;
  changed_.notify_all();
  if (!changed_.wait_for(lock, kPatience, [&] { return aborted_ || m.arrived == group.size(); }) || aborted_)
    return absl::DeadlineExceededError("error: the other devices of a collective did not come");
  std::vector<Literal> all = m.values;
  if (++m.left == group.size()) meetings_.erase(key);
  return all;
}

void World::Send(int64_t channel, Literal value) {
  std::lock_guard<std::mutex> lock(mutex_);
  queues_[channel].push_back(std::move(value));
  changed_.notify_all();
}

absl::StatusOr<Literal> World::Receive(int64_t channel) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::deque<Literal>& q = queues_[channel];
  if (!changed_.wait_for(lock, kPatience, [&] { return aborted_ || !q.empty(); }) || q.empty())
    return absl::DeadlineExceededError("error: nothing arrived in a queue that the program reads");
  Literal v = std::move(q.front());
  q.pop_front();
  return v;
}

void World::Abort() {
  std::lock_guard<std::mutex> lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

Participant::Participant(World* w, int64_t d) : world(w), device(d), outer_(current) { current = this; }
Participant::~Participant() { current = outer_; }
const Participant* Participant::Current() { return current; }

absl::StatusOr<std::vector<Literal>> EvaluateOnDevices(const std::vector<const Module*>& programs,
                                                       const std::vector<std::vector<Literal>>& arguments,
                                                       World* world) {
  std::vector<absl::StatusOr<Literal>> results(programs.size(), absl::UnknownError("did not run"));
  std::vector<std::thread> threads;
  for (size_t d = 0; d < programs.size(); ++d)
    threads.emplace_back([&, d] {
      Participant self(world, static_cast<int64_t>(d));
      results[d] = Evaluate(*programs[d], arguments[d]);
      if (!results[d].ok()) world->Abort();
    });
  for (std::thread& t : threads) t.join();
  for (const auto& r : results)
    if (!r.ok() && !absl::IsDeadlineExceeded(r.status())) return r.status();
  std::vector<Literal> out;
  for (auto& r : results) {
    RETURN_IF_ERROR(r.status());
    out.push_back(*std::move(r));
  }
  return out;
}

}  // namespace kiln
