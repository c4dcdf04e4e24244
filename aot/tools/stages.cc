#include "aot/tools/stages.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kiln {
namespace {

double Milliseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace

Stages::Stages(std::string model, bool verbose)
    : model_(std::move(model)), verbose_(verbose), terminal_(isatty(STDERR_FILENO) && !verbose) {}

Stages::~Stages() {
  if (terminal_) std::fprintf(stderr, "\r\033[K");
}

void Stages::Show(const std::string& text) const {
  if (verbose_) std::fprintf(stderr, "kiln: %s: %s\n", model_.c_str(), text.c_str());
  if (terminal_) std::fprintf(stderr, "\r\033[Kkiln: %s: %s", model_.c_str(), text.c_str());
}

// A stage that comes again, for another target or batch size, adds to its time.
void Stages::Close(Clock::time_point now) {
  if (stage_.empty()) return;
  const auto known = std::find_if(times_.begin(), times_.end(), [&](const auto& t) { return t.first == stage_; });
  const double ms = Milliseconds(now - began_);
  if (known == times_.end())
    times_.emplace_back(stage_, ms);
  else
    known->second += ms;
}

void Stages::Begin(const std::string& stage) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point now = Clock::now();
  Close(now);
  stage_ = stage;
  began_ = shown_ = now;
  Show(stage);
}

// Whether there was no line for a second.
bool Stages::IsTime(Clock::time_point now) {
  constexpr double kBetween = 1000;  // ms
  if (Milliseconds(now - shown_) < kBetween) return false;
  shown_ = now;
  return true;
}

void Stages::Note(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (IsTime(Clock::now())) Show(absl::StrCat(stage_, ", ", text));
}

void Stages::Advance(size_t done, size_t all) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (done == 0 || done >= all || !IsTime(now)) return;
  const double left = Milliseconds(now - began_) / static_cast<double>(done) * static_cast<double>(all - done);
  Show(absl::StrFormat("%s, %d of %d objects, about %.0f s left", stage_, done, all, left / 1000));
}

void Stages::End(const std::string& more) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Close(Clock::now());
  stage_.clear();
  if (!verbose_) return;
  double total = 0;
  for (const auto& [stage, ms] : times_) {
    std::fprintf(stderr, "  %-18s %10.1f ms\n", stage.c_str(), ms);
    total += ms;
  }
  std::fprintf(stderr, "  %-18s %10.1f ms\n%s", "total", total, more.c_str());
}

}  // namespace kiln
