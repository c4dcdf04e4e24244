// A library that measures itself: counts, times, parents of loops, several threads, traces.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "profiled.h"
#include "tests/link/expect.h"

namespace {

constexpr std::size_t kX = 512 * 128, kW = 128 * 256, kOut = 512 * 256;

void RunTimes(int times, kiln_pool* pool) {
  profiled::Context context(pool);
  std::vector<float> x(kX, 1), w(kW, 1), out(kOut);
  for (int k = 0; k < times; ++k)
    Expect(profiled::run(context, profiled::Argument_pixels::Unchecked(x.data()),
                         profiled::Argument_w::Unchecked(w.data()), profiled::Result_result0::Unchecked(out.data()))
               .ok(),
           "a run");
}

// The entry whose op_name ends so; -1 if there is none.
std::int64_t EntryOf(const std::string& end) {
  for (std::int64_t k = 0; k < profiled::Profile::size(); ++k) {
    const std::string name = profiled::Profile::entry(k).op.op_name;
    if (name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0) return k;
  }
  return -1;
}

void Counts() {
  kiln_pool* pool = profiled_pool_create(3);
  RunTimes(1, pool);
  profiled::Profile::reset();
  for (std::int64_t k = 0; k < profiled::Profile::size(); ++k)
    Expect(profiled::Profile::entry(k).calls == 0, "reset forgets");
  std::thread other([&] { RunTimes(3, pool); });
  RunTimes(4, nullptr);
  other.join();
  profiled_pool_destroy(pool);

  const std::int64_t dot = EntryOf("layer0/dot_general"), loop = EntryOf("jit(f)/while"), log = EntryOf("body/exp");
  Expect(dot >= 0 && loop >= 0 && log >= 0, "operations have the user's names");
  if (failures) return;
  const kiln_profile_entry d = profiled::Profile::entry(dot), l = profiled::Profile::entry(loop),
                           b = profiled::Profile::entry(log);
  Expect(d.calls == 7 && l.calls == 7 && b.calls == 35, "runs of both threads and rounds of the loop are counted");
  Expect(d.op.flops == 2 * 512 * 128 * 256, "the work of a product");
  Expect(d.op.source_line == 12 && std::strcmp(d.op.source_file, "/src/model.py") == 0, "where it was written");
  Expect(b.op.parent == loop && l.op.parent == -1 && std::strcmp(l.op.kind, "while") == 0, "what lies in the loop");
  Expect(b.ns > 0 && l.ns > b.ns && b.thread_ns > 0, "a loop's time includes its body's");
  Expect(profiled::Profile::entry(-1).calls == 0 && *profiled::Profile::entry(1 << 20).op.name == 0, "no such entry");
}

// How often the first operation and the first of the loop were counted in `runs` runs of each of `threads` threads.
void Sampled(std::int64_t every, int runs, int threads, std::int64_t want, const char* what) {
  profiled::Profile::reset();
  profiled::Profile::sample(every);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back([&] { RunTimes(runs, nullptr); });
  for (std::thread& t : all) t.join();
  const kiln_profile_entry dot = profiled::Profile::entry(EntryOf("layer0/dot_general")),
                           log = profiled::Profile::entry(EntryOf("body/exp"));
  Expect(dot.calls == want && log.calls == 5 * want, what);
  Expect((dot.ns > 0) == (want > 0) && (dot.thread_ns > 0) == (want > 0), "only measured runs take time");
}

void Sampling() {
  Sampled(4, 12, 1, 3, "one run in four");
  Sampled(3, 6, 4, 8, "one run in three, of several threads");
  Sampled(0, 5, 1, 0, "no run");
  Sampled(-7, 5, 1, 0, "fewer than no run");
  Sampled(1, 5, 1, 5, "every run again");

  // A kernel that is split is not measured by its threads either.
  profiled::Profile::reset();
  profiled::Profile::sample(0);
  std::vector<kiln_profile_event> events(64, {-1, 0, 0, 0, 0});
  profiled::Profile::trace(events.data(), 64);
  kiln_pool* pool = profiled_pool_create(3);
  RunTimes(3, pool);
  profiled_pool_destroy(pool);
  Expect(events[0].entry == -1, "runs that are not measured leave no events");
  profiled::Profile::trace(nullptr, 0);

  // Every second run is another program's: both are met.
  profiled::Profile::sample(2);
  int even = 0, odd = 0;
  for (int k = 0; k < 64; ++k) {
    profiled::Profile::reset();
    RunTimes(1, nullptr);
    (k % 2 ? odd : even) += static_cast<int>(profiled::Profile::entry(0).calls);
  }
  Expect(even + odd == 32 && even > 4 && odd > 4, "programs that take turns are all measured");
  profiled::Profile::sample(1);
}

void Trace() {
  std::vector<kiln_profile_event> events(8);
  profiled::Profile::trace(events.data(), 8);
  profiled::Profile::reset();
  RunTimes(2, nullptr);
  const char* path = "trace.json";
  Expect(profiled::Profile::write_trace(path), "a trace is written");
  profiled::Profile::trace(nullptr, 0);
  RunTimes(1, nullptr);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::size_t count = 0;
  for (std::size_t at = text.find("\"ph\":\"X\""); at != std::string::npos; at = text.find("\"ph\":\"X\"", at + 1))
    ++count;
  Expect(count == 8, "the latest events are kept");
  Expect(text.find("jit(f)/layer1/div") != std::string::npos, "events have the user's names");
  Expect(!profiled::Profile::write_trace("/no/such/folder/trace.json"), "a path that cannot be written");
}

}  // namespace

int main() {
  Counts();
  Sampling();
  Trace();
  if (!failures) std::printf("profiles hold\n");
  return failures ? 1 : 0;
}
