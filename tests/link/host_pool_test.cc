// A host's own pool, through its three functions: models run on the pool's own threads, more of them than there are
// threads, and give what a run without a pool gives. A pool whose threads all wait inside runs must not stand still.
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "decoder.h"

namespace {

class HostPool {
 public:
  explicit HostPool(int threads) {
    for (int k = 0; k < threads; ++k) threads_.emplace_back([this] { Loop(); });
  }
  ~HostPool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  void Submit(std::function<void()> task) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back(std::move(task));
      ++submitted_;
    }
    wake_.notify_one();
  }
  bool RunOne() {
    std::function<void()> task;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    return true;
  }
  int size() const { return static_cast<int>(threads_.size()); }
  long submitted() const { return submitted_; }

 private:
  void Loop() {
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
        if (stop_ && tasks_.empty()) return;
      }
      RunOne();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  long submitted_ = 0;
  bool stop_ = false;
};

struct Run {
  alignas(64) float cache[DECODER_ARGUMENT_ARG2_COUNT] = {};
  alignas(64) float logits[DECODER_RESULT_RESULT0_COUNT] = {};
  bool ok = true;
  void Steps(decoder::Context& context) {
    alignas(64) int32_t token[1], at[1];
    for (int k = 0; k < 8; ++k) {
      token[0] = k + 1;
      at[0] = k;
      ok = decoder::run(context, token, at, cache, logits).ok() && ok;
    }
  }
};

}  // namespace

int main() {
  Run alone;
  decoder::Context context;
  alone.Steps(context);

  constexpr int kRuns = 6;
  std::vector<Run> runs(kRuns);
  long submitted;
  {
    HostPool host(3);
    decoder_pool table{
        &host, [](void* self) { return static_cast<HostPool*>(self)->size(); },
        [](void* self, void (*fn)(void*), void* arg) { static_cast<HostPool*>(self)->Submit([=] { fn(arg); }); },
        [](void* self) {
          if (!static_cast<HostPool*>(self)->RunOne()) std::this_thread::yield();
        }};
    for (Run& r : runs)
      host.Submit([&] {
        decoder::Context mine(&table);
        r.Steps(mine);
      });
    while (host.RunOne()) {
    }
    Run last;
    decoder::Context mine(&table);
    last.Steps(mine);
    submitted = host.submitted();
    if (!last.ok || std::memcmp(last.logits, alone.logits, sizeof alone.logits)) return 1;
  }
  if (submitted <= kRuns) {
    std::printf("no kernel was split: the pool saw %ld tasks\n", submitted);
    return 1;
  }
  for (const Run& r : runs)
    if (!r.ok || std::memcmp(r.logits, alone.logits, sizeof alone.logits)) {
      std::printf("a run on the host's pool differs\n");
      return 1;
    }
  std::printf("%ld tasks, %d runs alike\n", submitted, kRuns);
  return 0;
}
