#include "aot/tools/profile_run.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include <algorithm>
#include <chrono>

#include "runtime_min/profile.h"

namespace kiln {
namespace {

// Filled by the process that runs the program.
struct Shared {
  double ns_per_tick;
  int64_t trace_failed;
  uint64_t last_run;  // when it began
  struct Counts {
    int64_t calls;
    double ns, thread_ns;
  } counts[];
};

constexpr int64_t kEvents = 1 << 17;

// Memory that both processes have.
class Mapping {
 public:
  explicit Mapping(size_t bytes)
      : bytes_(bytes), data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapping() {
    if (ok()) munmap(data_, bytes_);
  }
  bool ok() const { return data_ != MAP_FAILED; }
  void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

template <typename Function>
Function* Find(void* library, const CompiledModel& m, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, SymbolOf(m, name).c_str()));
}

// The child's side: counting begins behind the first run, and ends with the last.
class Recorder {
 public:
  Recorder(Shared* shared, kiln_profile_event* events, std::string trace_path)
      : shared_(shared), events_(events), trace_path_(std::move(trace_path)) {}

  void BeforeRun(void* library, const CompiledModel& m, int number) {
    if (number == 1) {
      Find<void(kiln_profile_event*, int64_t)>(library, m, "profile_trace")(events_, kEvents);
      Find<void()>(library, m, "profile_reset")();
      start_ = std::chrono::steady_clock::now();
      start_ticks_ = __rdtsc();
    }
    shared_->last_run = __rdtsc();
  }

  void AfterRuns(void* library, const CompiledModel& m) {
    const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - start_;
    shared_->ns_per_tick = ns.count() / static_cast<double>(__rdtsc() - start_ticks_);
    for (size_t k = 0; k < m.code.ops.size(); ++k) {
      const kiln_profile_entry e =
          Find<kiln_profile_entry(int64_t)>(library, m, "profile_entry")(static_cast<int64_t>(k));
      shared_->counts[k] = {e.calls, e.ns, e.thread_ns};
    }
    if (!trace_path_.empty())
      shared_->trace_failed = Find<int(const char*)>(library, m, "profile_write_trace")(trace_path_.c_str());
  }

 private:
  Shared* const shared_;
  kiln_profile_event* const events_;
  const std::string trace_path_;
  std::chrono::steady_clock::time_point start_;
  uint64_t start_ticks_ = 0;
};

std::vector<Profile::Event> EventsOfLastRun(const Shared& shared, const kiln_profile_event* events) {
  std::vector<uint64_t> threads;
  std::vector<Profile::Event> out;
  for (int64_t k = 0; k < kEvents; ++k) {
    const kiln_profile_event& e = events[k];
    if (e.begin < shared.last_run || e.end < e.begin) continue;
    auto thread = std::find(threads.begin(), threads.end(), e.thread);
    if (thread == threads.end()) thread = threads.insert(thread, e.thread);
    const double us = shared.ns_per_tick / 1e3;
    out.push_back({static_cast<size_t>(e.entry), thread - threads.begin(),
                   static_cast<double>(e.begin - shared.last_run) * us, static_cast<double>(e.end - e.begin) * us,
                   e.part != 0});
  }
  // What lies around others first.
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.begin != b.begin ? a.begin < b.begin : a.us > b.us; });
  return out;
}

std::vector<Profile::Row> RowsOf(const CompiledModel& m, const Shared& shared, int counted) {
  std::vector<Profile::Row> rows;
  for (size_t k = 0; k < m.code.ops.size(); ++k) {
    const Shared::Counts& c = shared.counts[k];
    const double us = c.ns / 1e3 / counted;
    rows.push_back({m.code.ops[k], static_cast<double>(c.calls) / counted, us, us, c.thread_ns / 1e3 / counted});
  }
  for (const Profile::Row& r : rows)
    if (r.op.parent >= 0) rows[static_cast<size_t>(r.op.parent)].self_us -= r.us;
  for (Profile::Row& r : rows) r.self_us = std::max(r.self_us, 0.0);
  return rows;
}

}  // namespace

absl::StatusOr<ProfiledRun> RunProfiled(std::unique_ptr<Module> module, const std::vector<Literal>& arguments,
                                        CompileOptions compile, RunOptions run, const std::string& trace_path) {
  constexpr size_t kMostOps = 1 << 20;
  const Mapping counts(sizeof(Shared) + kMostOps * sizeof(Shared::Counts));
  const Mapping events(kEvents * sizeof(kiln_profile_event));
  if (!counts.ok() || !events.ok()) return ResourceExhausted("error: cannot map memory for the events of a profile");
  auto* shared = static_cast<Shared*>(counts.data());
  Recorder recorder(shared, static_cast<kiln_profile_event*>(events.data()), trace_path);
  compile.debug.profile = true;
  const int counted = std::max(run.repeat, 1);
  run.repeat = counted + 1;
  run.before_run = [&](void* library, const CompiledModel& m, int k) { recorder.BeforeRun(library, m, k); };
  run.after_runs = [&](void* library, const CompiledModel& m) { recorder.AfterRuns(library, m); };
  ProfiledRun out;
  ASSIGN_OR_RETURN(out.run, RunModule(std::move(module), arguments, compile, run));
  const CompiledModel& m = out.run.model;
  if (m.code.ops.size() > kMostOps)
    return ResourceExhausted("error: a profile holds at most ", kMostOps, " operations");
  if (shared->trace_failed) return InvalidArgument(trace_path, ": error: cannot write the trace");
  out.profile.threads = run.threads;
  out.profile.repeat = counted;
  out.profile.median_us = out.run.median_us;
  out.profile.rows = RowsOf(m, *shared, counted);
  out.profile.events = EventsOfLastRun(*shared, static_cast<const kiln_profile_event*>(events.data()));
  return out;
}

}  // namespace kiln
