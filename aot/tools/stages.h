// What a compile is doing, for the person who waits.
//
// On a terminal, one line that is written over. With `verbose`, a line for each stage, what is left of a long one, and
// at the end what each took; also without a terminal. Otherwise nothing. All on the standard error.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

class Stages {
 public:
  Stages(std::string model, bool verbose);
  ~Stages();
  Stages(const Stages&) = delete;

  void Begin(const std::string& stage);
  // That `done` of `all` parts of the stage are made. From any thread.
  void Advance(size_t done, size_t all);
  // What the stage has come to.
  void Note(const std::string& text);
  // After the last stage: prints the times, and `more` of where the time of a stage went.
  void End(const std::string& more = "");

 private:
  using Clock = std::chrono::steady_clock;
  void Show(const std::string& text) const;
  bool IsTime(Clock::time_point now);
  void Close(Clock::time_point now);

  const std::string model_;
  const bool verbose_, terminal_;
  std::mutex mutex_;
  std::string stage_;
  Clock::time_point began_, shown_;
  std::vector<std::pair<std::string, double>> times_;  // in ms, by stage in their order
};

}  // namespace kiln
